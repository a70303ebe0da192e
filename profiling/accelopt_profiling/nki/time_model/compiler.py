"""Models the known transformations of the Beta 1 compiler; each can be switched off.

Evidence: published profiles of the NKIBench baselines (bytes moved per memory, products that transpose), which differ
from what the kernels ask for. What is applied per target stands in its file ("compiler").

- A value that is computed again from the same data is kept instead (``share``): repeated loads, transposes through
  TensorE, broadcasts, and products of two loaded tiles. Transposes that the compiler makes itself for ``nl.matmul``
  are not shared, repeated loads and broadcast rows only where the tiles fit, and VectorE's results only where few are
  kept at once.
- Results of ScalarE that one ``tensor_tensor`` reads, and rows that TensorE broadcasts for ``tensor_tensor``, lie in
  PSUM, where reading is cheaper and nothing is kept for long (``operands_in_psum``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from accelopt_profiling.nki.data.coverage import Box
from accelopt_profiling.nki.data.instruction import (
    SCALAR,
    TENSOR,
    VECTOR,
    BlockInfo,
    Region,
    TracedInstruction,
)
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.time_model.step import Kinds, ScheduledStep

_SHAREABLE = ("load", "nc_matmul", "tensor_copy", "tensor_tensor")

#: VectorE's results of one line that are kept at once, not computed again. AWS's fused mamba tutorial: 32 tiles of
#: delta * u are computed for each state (v1), 1 and 16 are not (v2, and v3 with 8192 steps).
_KEPT_RESULTS = 16


def transposed_loads(instructions: list[TracedInstruction], side: int) -> list[TracedInstruction]:
    """Return the program with each transposed load of elements of four bytes as the load of the rows as they lie, a
    transpose on TensorE for each ``side`` of them, and the copies of these from PSUM."""
    program: list[TracedInstruction] = []
    for i in instructions:
        if i.opcode != "load" or not i.transpose or i.itemsize != 4:
            program.append(i)
            continue
        (block, box), columns, rows = i.writes[0], i.partitions, i.free
        staging = BlockInfo(
            -1, MemorySpace.SBUF, (min(rows, side), -(-rows // side) * columns), 4, "", i.line, False
        )
        load = i.copy()
        load.transpose, load.descriptors, load.writes = False, rows, [_all(staging)]
        program.append(load)
        for first in range(0, rows, side):
            last = min(first + side, rows)
            bank = BlockInfo(-1, MemorySpace.PSUM, (columns, last - first), 4, "", i.line, False)
            product = TracedInstruction("nc_matmul", (TENSOR,), i.line, last - first, last - first)
            product.transpose = product.onezero = True
            product.stationary = columns
            at = first // side * columns
            product.reads = [(staging, ((0, last - first), (at, at + columns)))]
            product.writes = [_all(bank)]
            copy = TracedInstruction("tensor_copy", (VECTOR, SCALAR), i.line, columns, last - first)
            copy.psum_inputs, copy.reads = 1, [_all(bank)]
            part = (*box[:-1], (box[-1][0] + first, box[-1][0] + last))
            copy.writes = [(block, part)]
            program += [product, copy]
    return program


def _all(block: BlockInfo) -> Region:
    return block, tuple((0, n) for n in block.shape)


def operands_in_psum(steps: list[ScheduledStep], kinds: Kinds, bank: int) -> list[ScheduledStep]:
    """Let ``tensor_tensor`` read from PSUM, if it fits ``bank`` bytes, what ScalarE computes for it alone, and rows
    that TensorE broadcasts, which are not copied then. Returns the steps that are left."""
    readers: dict[BlockInfo, list[ScheduledStep]] = defaultdict(list)
    writers: dict[BlockInfo, list[ScheduledStep]] = defaultdict(list)
    for step in steps:
        for block, _ in step.reads:
            readers[block].append(step)
        for block, _ in step.writes:
            writers[block].append(step)
    needless: set[int] = set()
    for step in steps:
        if len(step.writes) != 1:
            continue
        block = step.writes[0][0]
        pairs = all(reader.opcode == "tensor_tensor" and not reader.psum_inputs for reader in readers[block])
        if (
            block.memory is not MemorySpace.SBUF
            or block.free_bytes > bank
            or len(writers[block]) != 1
            or not pairs
        ):
            continue
        if step.opcode == "tensor_scalar" and step.engine == SCALAR and len(readers[block]) == 1:
            instead = block
        elif (row := _broadcast(step, readers, writers)) is not None:
            instead = row
            needless.add(id(step))
        else:
            continue
        for reader in readers[block]:
            reader.reads = [(instead if read is block else read, box) for read, box in reader.reads]
            reader.psum_inputs = 1
            kinds.number(reader)
    return [step for step in steps if id(step) not in needless]


def _broadcast(
    step: ScheduledStep,
    readers: dict[BlockInfo, list[ScheduledStep]],
    writers: dict[BlockInfo, list[ScheduledStep]],
) -> BlockInfo | None:
    """Return the tile in PSUM that ``step`` alone copies, if TensorE made it by broadcasting a row."""
    if step.opcode != "tensor_copy" or len(step.reads) != 1:
        return None
    block = step.reads[0][0]
    if not _is_broadcast(writers[block]) or block.shape != step.writes[0][0].shape:
        return None
    return block if block.memory is MemorySpace.PSUM and len(readers[block]) == 1 else None


def _is_broadcast(writers: Sequence[ScheduledStep]) -> bool:
    """Return whether a tile that ``writers`` wrote is a row that TensorE broadcast."""
    writer = writers[0].instruction if len(writers) == 1 else None
    return writer is not None and writer.onezero and not writer.transpose


def _most_at_once(changes: list[tuple[int, int]]) -> int:
    """Return the most that is alive at once, of (position, change) pairs."""
    alive = most = 0
    for _, change in sorted(changes):
        alive += change
        most = max(most, alive)
    return most


class _Value:
    """The content of a tile, as the computation of each part of it."""

    __slots__ = ("last_write", "line", "loaded", "parts", "resolved", "same", "visit")

    def __init__(self) -> None:
        self.parts: list[tuple[Box, Hashable]] = []
        self.last_write = -1
        self.resolved = False
        self.same: Hashable = None  # equal for tiles with equal content; None: not known to repeat
        self.line = self.visit = 0
        self.loaded = False


@dataclass
class _First:
    """A content's number, the tile that has it first, and when it was made again last."""

    number: int
    block: BlockInfo
    line: int = 0
    visit: int = 0


def share(
    steps: list[ScheduledStep], room: int, across_loops: bool = True
) -> tuple[list[ScheduledStep], dict[int, int]]:
    """Drop steps that compute again what a tile already holds, and let readers use that tile.

    ``room``: usable bytes of SBUF per partition; ``across_loops`` as in ``Compiler``. Returns the steps that are left,
    and the bytes of loads that were dropped by the ``ident`` of the tile that is used instead; 0 where nothing reads
    what was loaded.
    """
    sharing = _Sharing(steps, across_loops)
    sharing.number_values()
    sharing.keep_repeats_that_are_too_many(room)
    return sharing.apply()


class _Sharing:
    def __init__(self, steps: list[ScheduledStep], across_loops: bool) -> None:
        self.steps, self.across_loops, self.numbers = steps, across_loops, 0
        self.values: dict[BlockInfo, _Value] = {}
        self.first: dict[Hashable, _First] = {}  # by content
        self.instead: dict[BlockInfo, BlockInfo] = {}
        self.writers: dict[BlockInfo, list[ScheduledStep]] = defaultdict(list)
        for number, step in enumerate(steps):
            for block, _ in step.writes:
                self.values.setdefault(block, _Value()).last_write = number
                self.writers[block].append(step)
        #: Lines of products that are not transposes: a transpose on such a line belongs to ``nl.matmul``.
        self.products = {
            s.line for s in steps
            if s.opcode == "nc_matmul" and s.instruction is not None
            and not s.instruction.transpose and not s.instruction.onezero
        }  # fmt: skip

    def number_values(self) -> None:
        visits: dict[int, int] = defaultdict(int)
        before = -1
        for number, step in enumerate(self.steps):
            if step.line != before:
                before = step.line
                visits[before] += 1
            for block, _ in step.reads:
                self._resolve(block, number)
            key = self._key(step)
            for block, box in step.writes:
                value = self.values[block]
                value.parts.append((box, key))
                value.line, value.visit, value.loaded = step.line, visits[step.line], step.opcode == "load"

    def _resolve(self, block: BlockInfo, number: int) -> Hashable:
        """Return the content of a tile at its first read; a tile that is written again later has none that
        repeats."""
        value = self.values.get(block)
        if value is None:
            return None
        if not value.resolved:
            value.resolved = True
            written = value.last_write < number and block.memory is not MemorySpace.HBM
            if written and value.parts and all(key is not None for _, key in value.parts):
                content = (block.shape, block.free_bytes, block.memory, tuple(value.parts))
                first = self.first.get(content)
                if first is None or not self._follows(value, first):
                    self.numbers += 1
                    first = self.first[content] = _First(self.numbers, block)
                else:
                    self.instead[block] = first.block
                first.line, first.visit = value.line, value.visit
                value.same = first.number
        return value.same

    def _follows(self, value: _Value, first: _First) -> bool:
        """Return whether a value may be shared with what made its content last: of others than loads, where it was
        made in the iteration before, so that it does not change in the innermost loop."""
        return (
            self.across_loops or value.loaded or (value.line == first.line and value.visit <= first.visit + 1)
        )

    def _key(self, step: ScheduledStep) -> Hashable:
        instruction = step.instruction
        if step.opcode not in _SHAREABLE or step.accumulate or instruction is None:
            return None
        if step.opcode == "load":
            source = instruction.reads[0][0]
            if source.constant and instruction.pattern is not None:
                return (source, instruction.pattern)
            return None
        made_for_product = step.line in self.products and step.opcode != "tensor_tensor"
        if made_for_product or (
            step.opcode == "nc_matmul" and not (instruction.transpose or instruction.onezero)
        ):
            return None
        operands: list[Hashable] = []
        for block, box in instruction.reads:
            if block.constant:
                operands.append((block, box))
                continue
            same = self.values[block].same if block in self.values else None
            if same is None:
                return None
            operands.append((same, box))
        line = step.line if step.opcode == "tensor_tensor" else 0
        return (step.opcode, line, tuple(operands))

    def keep_repeats_that_are_too_many(self, room: int) -> None:
        """Make again what would not fit if all of it were kept: loads, broadcast rows, and results of VectorE of which
        there are many."""
        kinds = {
            p: kind for s in self.steps for p, _ in s.writes if p in self.instead and (kind := self._kind(s))
        }
        limits = {"load": room, "row": room, "tensor_tensor": _KEPT_RESULTS}
        spans: dict[BlockInfo, list[int]] = {}
        originals = {self.instead[p]: p for p in kinds}
        for number, step in enumerate(self.steps):
            for block, _ in (*step.reads, *step.writes):
                block = self.instead.get(block, block)
                if block in originals:
                    spans.setdefault(block, [number, number])[1] = number
        changes: dict[tuple[int, str, str], list[tuple[int, int]]] = defaultdict(list)
        for block, (low, high) in spans.items():
            kind = kinds[originals[block]]
            size = 1 if kind == "tensor_tensor" else block.free_bytes
            changes[block.line, block.name, kind] += [(low, size), (high + 1, -size)]
        too_many = {where for where, steps in changes.items() if _most_at_once(steps) > limits[where[2]]}
        for block, kind in kinds.items():
            if (block.line, block.name, kind) in too_many:
                del self.instead[block]

    def _kind(self, step: ScheduledStep) -> str | None:
        """Return what limits how much is kept of what ``step`` makes, or None where nothing does."""
        if step.opcode == "tensor_copy":
            return "row" if step.reads and _is_broadcast(self.writers[step.reads[0][0]]) else None
        return step.opcode if step.opcode in ("load", "tensor_tensor") else None

    def apply(self) -> tuple[list[ScheduledStep], dict[int, int]]:
        instead = self.instead
        rest: list[ScheduledStep] = []
        dropped: dict[int, int] = defaultdict(int)
        if not instead:
            return self.steps, dropped
        needed: set[BlockInfo] = set()
        for step in reversed(self.steps):
            on_chip = [p for p, _ in step.writes if p.memory is not MemorySpace.HBM]
            repeats = on_chip and all(p in instead for p in on_chip)
            unread = on_chip and step.opcode == "load" and all(p not in needed for p in on_chip)
            if repeats or (unread and len(on_chip) == len(step.writes)):
                if step.opcode == "load":
                    dropped[instead[on_chip[0]].ident if repeats else 0] += step.bytes
                continue
            for block, _ in step.reads:
                if (
                    block.memory is MemorySpace.PSUM
                ):  # a bank is not kept for long: what is read from it is made again
                    instead.pop(block, None)
            if any(p in instead for p, _ in step.reads):
                step.reads = [(instead.get(p, p), box) for p, box in step.reads]
            needed.update(p for p, _ in step.reads)
            rest.append(step)
        rest.reverse()
        return rest, dropped
