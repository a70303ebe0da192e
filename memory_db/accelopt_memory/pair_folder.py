"""A project's pairs as text files beside its code, one for each pair, so that git brings them to everybody.

A file is named by the pair's id, the hash of its content: two people who accept the same change write the same file,
and what several add merges without conflicts. The files are untrusted: bounded, checked, and what can be computed from
the sources is not read from them.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accelopt_memory.errors import explain
from accelopt_memory.export_masks import holds_secret
from accelopt_memory.features import kernel_features
from accelopt_memory.records import Pair
from accelopt_memory.rows import to_json
from accelopt_memory.whole_file import whole_file
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.plain import from_plain, to_plain

#: The name of the folder, below the root of the project.
FOLDER = "accelopt-memory"
#: A larger file, and what is beyond so many files or so many characters together, is not read.
FILE_BYTES, FILES, CHARACTERS = 1 << 18, 20_000, 1 << 26

#: What a file does not hold: what one machine alone knows, and what is computed from the sources.
_LEFT_OUT = ("created", "imported", "receipts", "host", "checked", "features", "slow_hash", "fast_hash")


@dataclass(frozen=True)
class PairFiles:
    """The ``pairs`` that files held, and the ``unread`` files with the reason why not."""

    pairs: tuple[Pair, ...]
    unread: tuple[str, ...]


class PairFolder:
    """The pairs below the root of one project."""

    def __init__(self, root: Path) -> None:
        self._root, self.folder = root, root / FOLDER

    @property
    def stamp(self) -> int | None:
        """What changes when files come or go; None without a folder."""
        try:
            return self.folder.stat().st_mtime_ns
        except OSError:
            return None

    def ids(self) -> list[str]:
        """Return the ids that files are named by, at most ``FILES``."""
        try:
            names = sorted(name for name in os.listdir(self.folder) if name.endswith(".json"))
        except FileNotFoundError:
            return []
        return [name.removesuffix(".json") for name in names[:FILES]]

    def write(self, pair: Pair) -> bool:
        """Write the file of a pair, unless it is there.

        False where a source looks as if it held a secret, and nothing is written.

        Raises:
            MemoryUnavailableError: the folder cannot be written.
        """
        if holds_secret(pair.slow_text + pair.fast_text):
            return False
        plain = {name: value for name, value in to_plain(pair).items() if name not in _LEFT_OUT}
        plain["file"] = self._relative(pair.file)
        for name in ("slow_text", "fast_text"):
            plain[name] = plain[name].split("\n")
        text = json.dumps(json.loads(to_json(plain)), indent=1, sort_keys=True, ensure_ascii=True)
        path = self._path(pair.id)
        try:
            self.folder.mkdir(exist_ok=True)
            if not path.exists():
                with whole_file(path, 0o644) as out:  # it is to be committed
                    out.write(f"{text}\n")
        except OSError as error:
            raise explain(error, path) or error from None
        return True

    def remove(self, pair_id: str) -> None:
        """Delete the file of a pair, if there is one. Raises MemoryUnavailableError: it cannot be deleted."""
        try:
            self._path(pair_id).unlink(missing_ok=True)
        except OSError as error:
            raise explain(error, self._path(pair_id)) or error from None

    def read(self, ids: Iterable[str]) -> PairFiles:
        """Return the pairs of these files, as imported ones.

        What is no such file is left out, with the reason.
        """
        pairs, unread, characters = [], [], 0
        for pair_id in ids:
            try:
                text = _regular_text(self._path(pair_id))
                characters += len(text)
                if characters > CHARACTERS:
                    raise ValueError(f"more than {CHARACTERS >> 20} million characters together")
                pair = self._pair(pair_id, text)
            except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
                unread.append(f"{self._path(pair_id)}: {error or type(error).__name__}")
            else:
                pairs.append(pair)
        return PairFiles(tuple(pairs), tuple(unread))

    def _pair(self, pair_id: str, text: str) -> Pair:
        data = json.loads(text)
        texts = {name: _joined(data[name]) for name in ("slow_text", "fast_text")}
        hashes, kernel = [], data["kernel"]
        for source in texts.values():
            own_hashes = [k.content_hash for k in find_kernels(source).kernels if k.name == kernel]
            if not own_hashes:
                raise ValueError(f"a side has no kernel {kernel}")
            hashes.append(own_hashes[0])
        fields = {name: value for name, value in data.items() if name not in _LEFT_OUT} | texts
        features = kernel_features(texts["slow_text"], kernel, data.get("bound"))
        plain = {**fields, "slow_hash": hashes[0], "fast_hash": hashes[1], "features": to_plain(features)}
        pair = from_plain(Pair, plain)
        if pair.id != pair_id or pair.dialect != features.dialect:
            raise ValueError("its name is not the hash of its content")
        file = (
            self._root / pair.file if pair.file and ".." not in Path(pair.file).parts else self._path(pair_id)
        )
        return replace(pair, imported=True, file=str(file))

    def _relative(self, file: str) -> str:
        path = Path(file)
        if not path.is_absolute() or not path.is_relative_to(self._root):
            return ""
        return path.relative_to(self._root).as_posix()

    def _path(self, pair_id: str) -> Path:
        return self.folder / f"{pair_id}.json"


def _joined(lines: Any) -> str:
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise ValueError("a source that is no list of lines")
    return "\n".join(lines)


def _regular_text(path: Path) -> str:
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > FILE_BYTES:
            raise ValueError(f"no regular file of at most {FILE_BYTES >> 10} KiB")
        return file.read(FILE_BYTES + 1).decode()
