"""Keeps results as they come, one JSON line each, so that a run that was ended goes on where it stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from accelopt_profiling.plain import from_plain, to_plain


class Keyed(Protocol):
    """A result that says what it is a result of."""

    @property
    def key(self) -> str: ...


R = TypeVar("R", bound=Keyed)


class Journal(Generic[R]):
    """An append-only file of results of one ``kind``.

    A line that was cut off by the end of the process is passed over.
    """

    def __init__(self, path: Path, kind: type[R]) -> None:
        self._path = path
        self._known = {result.key: result for result in _read(path, kind)}

    def get(self, key: str) -> R | None:
        """Return the finished result of that key."""
        return self._known.get(key)

    def add(self, result: R) -> None:
        """Append an entry. Raises OSError when it cannot be written."""
        line = json.dumps(to_plain(result), ensure_ascii=False)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a+b") as file:
            if file.tell() and not _ends_with_newline(self._path):
                file.write(b"\n")
            file.write(line.encode() + b"\n")
        self._known[result.key] = result


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"


def _read(path: Path, kind: type[R]) -> list[R]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    results: list[R] = []
    for line in lines:
        try:
            results.append(from_plain(kind, json.loads(line)))
        except ValueError:
            continue
    return results
