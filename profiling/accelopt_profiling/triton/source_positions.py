"""Which line of the user's file each row of assembly text belongs to, from the ``.loc`` directives.

Code inlined from elsewhere (Triton's own ``standard.py``, a helper in another file) belongs to the line it was called
from. Triton 3.7 gives that chain in the comment after ``.loc`` (``a.py:1:2 @[ b.py:3:4 ]``), Triton 3.9 as
``inlined_at`` with the position of the caller.

LLVM gives each row of an inline assembly block a line of its own, counted on from the first: loads in Triton 3.9 are
four or more such rows. All rows of a block belong to the first one's line.
"""

from __future__ import annotations

import re
from pathlib import PurePath

_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)([^/;]*)(?:(?://|;)\s*(.*))?$")
_CALLER = re.compile(r"inlined_at\s+(\d+)\s+(\d+)\s+(\d+)")
_NAMED = re.compile(r"([^\s\[\]@:][^:\[\]]*):(\d+):\d+")
_BEGIN, _END = ("// begin inline asm", ";#ASMSTART"), ("// end inline asm", ";#ASMEND")

Chain = tuple[tuple[str, int], ...]  # file name and line, innermost first


class SourcePositions:
    """Reads rows in order. ``line`` is the user's line (0 if none) of what follows; ``given`` is the line as the
    assembler is told it, which differs inside inline assembly; ``inlined`` maps positions of any file, such as
    "standard.py:170", to the user's lines they were inlined into."""

    def __init__(self, file: str) -> None:
        self.line = 0
        self.given = 0
        self.inlined: dict[str, set[int]] = {}
        self._file = PurePath(file).name
        self._names: dict[str, str] = {}
        self._chains: dict[tuple[str, str, str], Chain] = {}
        self._inside = False
        self._settled = False

    def read(self, row: str) -> bool:
        """Take one row of text; True if it was about positions and holds no instruction."""
        bare = row.strip()
        if bare.startswith(_BEGIN):
            self._inside, self._settled = True, False
            return True
        if bare.startswith(_END):
            self._inside = False
            self.given = self.line
            return True
        if not bare.startswith(".loc"):
            return False
        if found := _LOC.match(row):
            chain = self._chain(found)
            line = next((line for name, line in chain if name == self._file), 0)
            self.given = line
            if not (self._inside and self._settled):
                self.line = line
                if line:
                    name, number = chain[0]
                    self.inlined.setdefault(f"{name}:{number}", set()).add(line)
            self._settled = True
        return True

    def _chain(self, found: re.Match[str]) -> Chain:
        index, line, column, rest, comment = found.groups()
        named = [(PurePath(name.strip()).name, int(number)) for name, number in _NAMED.findall(comment or "")]
        if named:
            self._names.setdefault(index, named[0][0])
        chain: Chain = tuple(named) or ((self._names.get(index, ""), int(line)),)
        if caller := _CALLER.search(rest):
            at = (caller[1], caller[2], caller[3])
            chain = (chain[0], *self._chains.get(at, ((self._names.get(at[0], ""), int(at[1])),)))
        self._chains[index, line, column] = chain
        return chain
