"""Writes the memory to a file of JSON lines and reads such a file. An imported file is untrusted: checked, bounded,
never executed.

The first line is a header; each other line is ``{"kind": ..., "id": ..., "data": {...}}``. Pairs, traps,
rejections and receipts are exported; runs, suggestions and the profile cache belong to one machine.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accelopt_memory.export_masks import holds_secret, masked
from accelopt_memory.features import check_features
from accelopt_memory.memory import TABLES, Memory
from accelopt_memory.records import Pair, RecordKind, Rejection, Trap, content_id
from accelopt_memory.rows import to_json
from accelopt_memory.whole_file import whole_file
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.receipt import Receipt

FORMAT = "accelopt-memory"
VERSION = 1
LINE_BYTES = 8 << 20
FILE_BYTES = 1 << 30
LINES = 200_000

#: In this order, so that a pair never arrives before its evidence.
_CLASSES: dict[str, type[Any]] = {"receipt": Receipt, "pair": Pair, "trap": Trap, "rejection": Rejection}


class MemoryImportError(ValueError):
    """A file is no export, or a line is not of the stated form. Nothing of the file was imported."""

    def __init__(self, path: Path, line: int, why: str) -> None:
        super().__init__(f"{path}, line {line}: {why}. Nothing was imported.")
        self.path, self.line, self.why = path, line, why


def export_memory(memory: Memory, path: Path, *, sources: bool = True) -> int:
    """Write pairs, traps, rejections and receipts to ``path``, without absolute paths and secrets, and return how many
    records; an existing file is replaced as a whole. Without ``sources`` no line of a kernel goes with it: no receipts,
    and of each pair what its slow side looks like, its numbers and its summary.

    Raises:
        OSError: the file cannot be written; what was there before is untouched.
    """
    count = 0
    with whole_file(path) as out:
        out.write(_line({"format": FORMAT, "version": VERSION}))
        receipts: dict[str, str] = {}  # a masked one has another id
        for kind, record in _records(memory):
            if not sources and kind == "receipt":
                continue
            shared = _masked(kind, record if sources else _without_sources(record), receipts)
            out.write(_line({"kind": kind, "id": shared.id, "data": shared}))
            count += 1
    return count


def _without_sources(record: Any) -> Any:
    """Return a pair with the hashes of its texts in their place, as an example that nothing can be made of."""
    if not isinstance(record, Pair):
        return record
    slow, fast = (f"# {content_id('text', text)}\n" for text in (record.slow_text, record.fast_text))
    return dataclasses.replace(record, slow_text=slow, fast_text=fast, lesson="", receipts=(), example=True)


def _masked(kind: RecordKind, record: Any, receipts: dict[str, str]) -> Any:
    """Return the record without absolute paths and secrets.

    ``receipts`` maps the ids of receipts to those of the masked ones.
    """
    shared = from_plain(_CLASSES[kind], masked(to_plain(record)))
    if kind == "receipt":
        receipts[record.id] = shared.id
    elif kind == "pair":
        shared = dataclasses.replace(shared, receipts=tuple(receipts.get(r, r) for r in record.receipts))
    return shared


def is_export(path: Path) -> bool:
    """Return whether a file begins as an export does, an empty one too. Raises OSError: it cannot be read."""
    if path.is_dir():
        return False
    with path.open("rb") as file:
        first = file.readline(LINE_BYTES)
    return not first.strip() or f'"{FORMAT}"'.encode() in first


def import_file(memory: Memory, path: Path) -> dict[str, int]:
    """Add the records of an export and return how many new ones of each kind there were; all of them or, on error,
    none.

    Raises:
        MemoryImportError: a line is too long, is not JSON, has another shape, its id is not that of its content, or
            a source in it looks as if it held a secret.
        OSError: the file cannot be read.
    """
    with memory.transaction():
        before = _counts(memory)
        for number, data in _lines(path):
            record = _checked(path, number, data)
            try:
                _add(memory, record)
            except RecursionError:
                raise MemoryImportError(path, number, f"a {data['kind']} that is nested too deeply") from None
        after = _counts(memory)
    return {kind: after[kind] - before[kind] for kind in after}


def _add(memory: Memory, record: Any) -> None:
    if isinstance(record, Receipt):
        memory.add_receipt(record)
    elif isinstance(record, Pair):
        memory.add_pair(record)
    elif isinstance(record, Trap):
        memory.add_trap(record)
    else:
        memory.add_rejection(record)


def _records(memory: Memory) -> Iterator[tuple[RecordKind, Any]]:
    with memory.connection.reading() as db:
        ids = [row[0] for row in db.execute("SELECT id FROM receipts ORDER BY number")]
    for receipt_id in ids:
        if receipt := memory.receipt(receipt_id):
            yield "receipt", receipt
    for pair in memory.pairs():
        yield "pair", pair
    for trap in memory.traps():
        yield "trap", trap
    for rejection in memory.rejected():
        yield "rejection", rejection


def _line(data: Any) -> str:
    return to_json(data) + "\n"


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the lines after the header, with their 1-based numbers."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size > FILE_BYTES:
            raise MemoryImportError(path, 1, f"the file is larger than {FILE_BYTES >> 20} MiB")
        number = 0
        while raw := file.readline(LINE_BYTES + 1):
            number += 1
            if len(raw) > LINE_BYTES or number > LINES:
                raise MemoryImportError(
                    path, number, f"more than {LINE_BYTES >> 20} MiB in a line or {LINES} lines"
                )
            try:
                data = json.loads(raw)
            except (ValueError, RecursionError) as error:
                raise MemoryImportError(path, number, f"not JSON ({type(error).__name__})") from None
            if not isinstance(data, dict):
                raise MemoryImportError(path, number, "not a JSON object")
            if number > 1:
                yield number, data
            elif data.get("format") != FORMAT:
                raise MemoryImportError(path, 1, "the file is no export of the memory")
            elif data.get("version") != VERSION:
                raise MemoryImportError(
                    path, 1, f"version {data.get('version')!r} is unknown; this program reads {VERSION}"
                )
        if not number:
            raise MemoryImportError(path, 1, "the file is empty")


def _checked(path: Path, number: int, line: dict[str, Any]) -> Any:
    cls = _CLASSES.get(str(line.get("kind")))
    if cls is None:
        raise MemoryImportError(path, number, f"unknown kind {line.get('kind')!r}")
    try:
        record = from_plain(cls, line.get("data"))
        sound = record.id == line.get("id")
        if isinstance(record, Pair):
            check_features(record.features)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise MemoryImportError(path, number, f"not a {line['kind']} ({error})") from None
    if not sound:
        raise MemoryImportError(path, number, "its id is not that of its content")
    if isinstance(record, Pair) and holds_secret(record.slow_text + record.fast_text):
        raise MemoryImportError(
            path, number, "a source of the pair looks as if it held a secret; take it out"
        )
    return record if cls is Receipt else dataclasses.replace(record, imported=True)


def _counts(memory: Memory) -> dict[str, int]:
    with memory.connection.reading() as db:
        return {
            kind: int(db.execute(f"SELECT count(*) FROM {TABLES[kind]}").fetchone()[0])
            for kind in ("receipt", "pair", "trap", "rejection")
        }
