"""The compiler's assembly text (PTX, AMD GCN) read into instructions with source lines and loops.

PTX is what Triton hands to ``ptxas``: instant to read, but from before register allocation. For AMD GPUs the text is
the machine code itself. LLVM writes each block's loop into a comment after its label.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

from accelopt_profiling.triton.compilation.instructions import (
    AssemblyInstruction,
    Listing,
    amdgcn_class,
    ptx_class,
)

_BLOCK = re.compile(r"^(?:\$L__|\.L)BB(\d+_\d+):|^(?://|;) %bb\.(\d+):")
_HEADER = re.compile(r"=>\s*This (?:Inner )?Loop Header: Depth=\d+")
_MEMBER = re.compile(r"in Loop: Header=BB(\d+_\d+)")
_PARENT = re.compile(r"Parent Loop BB(\d+_\d+)")
_PTX = re.compile(r"^\s*(?:@!?%?\w+\s+)?([a-z][a-z0-9_]*(?:[.:][\w:]+)*)(?=[\s;]|$)(.*)")
_AMDGCN = re.compile(r"^\s+([a-z][a-z0-9]*_[a-z0-9_]+)\b(.*)")
_TARGET = re.compile(r"BB(\d+_\d+)")


def parse_ptx(text: str, file: str) -> Listing:
    """Read PTX. ``file`` is the user's source file; only its last part is compared (see ``toolchain.cache_folder``)."""
    return _parse(text, file, pattern=_PTX, comment="//", classify=ptx_class, bytes_of=_ptx_bytes)


def parse_amdgcn(text: str, file: str) -> Listing:
    """Read AMD GCN assembly. ``file`` as in ``parse_ptx``."""
    end = text.find(".section\t.AMDGPU.csdata")
    return _parse(
        text if end < 0 else text[:end],
        file,
        pattern=_AMDGCN,
        comment=";",
        classify=amdgcn_class,
        bytes_of=_amdgcn_bytes,
    )


def _parse(
    text: str,
    file: str,
    pattern: re.Pattern[str],
    comment: str,
    classify: Callable[[str], str],
    bytes_of: Callable[[str, str], int],
) -> Listing:
    positions = SourcePositions(file)
    instructions: list[AssemblyInstruction] = []
    nests: dict[
        str, tuple[str, ...]
    ] = {}  # of each loop, by its header block: the loops around it and itself
    loop_lines: dict[str, int] = {}
    misplaced: dict[tuple[str, int], int] = {}
    block = ""
    nest: tuple[str, ...] = ()
    after_label = False
    for row in text.splitlines():
        if label := _BLOCK.match(row):
            block, nest, after_label = label[1] or label[2], (), True
        if after_label and comment in row:
            nest = (*nest, *_PARENT.findall(row))
            if _HEADER.search(row):
                nest = nests[block] = (*nest, block)
            elif member := _MEMBER.search(row):
                nest = (member[1],)
        if positions.read(row):
            continue
        bare = row.split(comment, 1)[0].strip()
        if not bare or bare.endswith(":") or bare.startswith((".", "{", "}", "$")):
            continue
        after_label = False
        if not (match := pattern.match(row)):
            continue
        opcode, operands = match[1], match[2]
        kind, line = classify(opcode), positions.line
        if kind == "global_load" and bare.endswith(" lds"):  # AMD's buffer loads say it as a modifier
            kind = "async_copy"
        if kind == "branch" and (goal := _TARGET.search(operands)) and goal[1] in nest and line:
            loop_lines[goal[1]] = line
        if positions.given != line:
            misplaced[kind, positions.given] = line
        access = bytes_of(opcode, operands) if kind in ("global_load", "global_store", "async_copy") else 0
        instructions.append(AssemblyInstruction(opcode, kind, line=line, loops=nest, bytes=access))
    placed = {(i.kind, i.line) for i in instructions}
    return Listing(
        tuple(replace(i, loops=nests.get(i.loops[-1], i.loops)) if i.loops else i for i in instructions),
        loop_lines,
        {position: frozenset(lines) for position, lines in positions.inlined.items()},
        {where: line for where, line in misplaced.items() if where not in placed},
    )


def _ptx_bytes(opcode: str, operands: str) -> int:
    """Return the bytes that one thread moves: vector length x element size, or the size operand of ``cp.async``."""
    if opcode.startswith("cp.async"):
        size = re.search(r"\],\s*(0x[0-9a-f]+|\d+)", operands.replace("[ ", "["))
        return int(size[1], 0) if size else 0
    vector = re.search(r"\.v(\d)", opcode)
    bits = re.search(r"\.[bufs]f?(\d+)$", opcode)
    return (int(vector[1]) if vector else 1) * int(bits[1]) // 8 if bits else 0


_AMDGCN_SIZES = {"dwordx4": 16, "dwordx3": 12, "dwordx2": 8, "dword": 4, "ushort": 2, "short": 2, "sshort": 2}


def _amdgcn_bytes(opcode: str, operands: str) -> int:
    words = opcode.split("_")
    return next((size for word, size in _AMDGCN_SIZES.items() if word in words), 1)


_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)([^/;]*)(?:(?://|;)\s*(.*))?$")
_CALLER = re.compile(r"inlined_at\s+(\d+)\s+(\d+)\s+(\d+)")
_NAMED = re.compile(r"([^\s\[\]@:][^:\[\]]*):(\d+):\d+")
_BEGIN, _END = ("// begin inline asm", ";#ASMSTART"), ("// end inline asm", ";#ASMEND")

Chain = tuple[tuple[str, int], ...]  # file name and line, innermost first


class SourcePositions:
    """Reads rows in order.

    ``line`` is the user's line (0 if none) of what follows; ``given`` is the line as the assembler is told it, which
    differs inside inline assembly; ``inlined`` maps positions of any file, such as "standard.py:170", to the user's
    lines they were inlined into.
    """

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
        """Take one row of text. True if it was about positions and holds no instruction."""
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
        if match := _LOC.match(row):
            chain = self._chain(match)
            line = next((line for name, line in chain if name == self._file), 0)
            self.given = line
            if not (self._inside and self._settled):
                self.line = line
                if line:
                    name, number = chain[0]
                    self.inlined.setdefault(f"{name}:{number}", set()).add(line)
            self._settled = True
        return True

    def _chain(self, match: re.Match[str]) -> Chain:
        index, line, column, rest, comment = match.groups()
        sites = [(PurePath(name.strip()).name, int(number)) for name, number in _NAMED.findall(comment or "")]
        if sites:
            self._names.setdefault(index, sites[0][0])
        chain: Chain = tuple(sites) or ((self._names.get(index, ""), int(line)),)
        if caller := _CALLER.search(rest):
            at = (caller[1], caller[2], caller[3])
            chain = (chain[0], *self._chains.get(at, ((self._names.get(at[0], ""), int(at[1])),)))
        self._chains[index, line, column] = chain
        return chain
