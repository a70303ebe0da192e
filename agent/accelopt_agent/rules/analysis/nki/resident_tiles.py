"""Keeps one tile per loop iteration in SBUF: the allocation, the stores and the reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import libcst as cst

from accelopt_agent.rules.analysis.constants import number_of_text
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.loops import loop_variable
from accelopt_agent.rules.analysis.nki.kernel import NL, RANGES, NkiKernel
from accelopt_agent.rules.analysis.nki.tile_shapes import TileShape
from accelopt_profiling.source_text import source_lines

#: What may be kept, of the 24 MiB that SBUF has on the smallest NeuronCore (AWS Neuron: NKI architecture guides).
RESIDENT_BYTES = 16 << 20


@dataclass(frozen=True)
class ResidentTiles:
    """The tensor ``name`` with a tile for each iteration of ``loops``, and the words to write about it."""

    name: str
    tile: TileShape
    loops: tuple[cst.For, ...]
    counts: tuple[str, ...]
    words: dict[str, str]

    def place(self, kernel: NkiKernel) -> str:
        """Return the tile of the current iteration."""
        rows = f"{self.words['arange']}({self.tile.rows})[:, None]"
        columns = f"{self.words['arange']}({self.tile.columns})[None, :]"
        return f"{self.name}[{', '.join([*self.indices(kernel), rows, columns])}]"

    def indices(self, kernel: NkiKernel) -> list[str]:
        return [kernel.source.code(loop.target) for loop in self.loops]

    def made(self) -> str:
        """Return the statement that makes the tensor."""
        sizes = [*self.counts, f"{self.words['par_dim']}({self.tile.rows})", self.tile.columns]
        options = f"dtype={self.tile.dtype}, buffer={self.words['sbuf']}"
        return f"{self.name} = {self.words['ndarray']}(({', '.join(sizes)}), {options})"

    def filled(self, kernel: NkiKernel, statements: Sequence[str]) -> str:
        """Return the tensor made, and ``statements`` run for each of its tiles: whole lines of code."""
        return "\n".join([self.made(), *in_loops(kernel, self.loops, statements)])


def in_loops(kernel: NkiKernel, loops: Sequence[cst.For], statements: Sequence[str]) -> list[str]:
    """Return the lines that run ``statements`` in loops with the headers of ``loops``, outermost first."""
    lines, indent = [], ""
    for loop in loops:
        lines.append(f"{indent}for {kernel.source.code(loop.target)} in {kernel.source.code(loop.iter)}:")
        indent += kernel.source.step
    return [*lines, *(indent + line for statement in statements for line in source_lines(statement))]


def keep(
    kernel: NkiKernel, name: str, tile: TileShape | None, loops: Sequence[cst.For]
) -> ResidentTiles | None:
    """Return a tensor of that name to keep ``tile`` in.

    None where it cannot be written or would be too large. Sizes that are not constant count as 1: the emulator finds
    out whether they fit.
    """
    words = {w: kernel.spelled(f"{NL}.{w}") for w in ("ndarray", "par_dim", "arange", "sbuf")}
    spellings = {w: spelled for w, spelled in words.items() if spelled is not None}
    counts = [counted(kernel, loop) for loop in loops]
    sizes = [count for count in counts if count is not None]
    if tile is None or tile.dtype is None or len(spellings) != len(words) or len(sizes) != len(counts):
        return None
    if kernel.flow.occurrences(name) or any(loop_variable(loop) is None for loop in loops):
        return None
    if too_large(kernel, [*sizes, tile.rows, tile.columns]):
        return None
    return ResidentTiles(name, tile, loops=tuple(loops), counts=tuple(sizes), words=spellings)


def too_large(kernel: NkiKernel, sizes: Sequence[str]) -> bool:
    """Return whether a float32 tensor of these sizes exceeds what may be kept; sizes that are not constant count as
    1."""
    return prod(number_of_text(kernel.flow, size) or 1 for size in sizes) * 4 > RESIDENT_BYTES


def counted(kernel: NkiKernel, loop: cst.For) -> str | None:
    """Return how often a loop runs that counts from 0, as code. None for any other loop."""
    if not isinstance(loop.iter, cst.Call) or len(loop.iter.args) != 1:
        return None
    name = kernel.path(loop.iter.func) or kernel.source.code(loop.iter.func)
    return kernel.source.code(loop.iter.args[0].value) if name in RANGES else None


def read_kept(kernel: NkiKernel, resident: ResidentTiles, uses: Sequence[cst.Name]) -> list[ByteEdit]:
    """Return the edits that read the kept tile where ``uses`` read the variable; none where one reads it in
    another way."""
    source, edits = kernel.source, []
    for use in uses:
        parent = source.parent(use)
        if isinstance(parent, cst.Attribute):
            return []
        if isinstance(parent, cst.Subscript) and parent.value is use:
            at = source.start(parent.slice[0])
            edits.append(source.replace(use, resident.name))
            edits.append(ByteEdit(at, at, "".join(f"{index}, " for index in resident.indices(kernel))))
        else:
            edits.append(source.replace(use, resident.place(kernel)))
    return edits
