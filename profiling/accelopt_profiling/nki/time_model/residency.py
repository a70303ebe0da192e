"""Which tiles lie in SBUF and PSUM when: room, repeated loads, spills.

The compiler of the Beta 1 dialect places tiles itself. Published profiles show that it drops a load whose data is
still on the chip and that it spills what does not fit; how it chooses is not documented. This layer assumes the best
choice: what is needed last leaves first (Belady). It can be switched off per target ("compiler" in the target's file).
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from dataclasses import dataclass, field

from accelopt_profiling.nki.instruction import DMA, Instruction, Memory, Place
from accelopt_profiling.nki.time_model.hardware import Hardware

_NEVER = 1 << 60


@dataclass
class Placed:
    """An instruction in its final order, with the names of the tiles it reads and writes (None: nobody reads it).

    ``after`` are positions of instructions whose end frees the room it needs.
    """

    instruction: Instruction
    reads: list[Hashable]
    writes: list[Hashable]
    after: list[int] = field(default_factory=list)


@dataclass
class Residency:
    """The instructions after placement, and what did not fit.

    ``peak`` is the most that is alive at once, from a tile's first use to its last, in bytes per partition, and
    ``peak_line`` the line where it is.
    """

    order: list[Placed] = field(default_factory=list)
    peak: dict[Memory, int] = field(default_factory=lambda: {Memory.SBUF: 0, Memory.PSUM: 0})
    peak_line: dict[Memory, int] = field(default_factory=dict)
    saved_bytes: int = 0
    reloaded_bytes: int = 0
    reused_bytes: int = 0
    spilled: dict[int, int] = field(default_factory=dict)  # line where the tile was made -> bytes moved
    banks: int = 8
    crowded: dict[int, int] = field(default_factory=dict)  # line -> PSUM banks alive at once, where too many


class _Held:
    """A tile (or all tiles that hold the same data of HBM): its uses in program order and where it is now."""

    __slots__ = ("at", "backed", "bytes", "last", "line", "memory", "partitions", "resident", "uses")

    def __init__(self, place: Place, bytes_: int) -> None:
        self.bytes, self.partitions, self.line, self.memory = bytes_, place.shape[0], place.line, place.memory
        self.uses: list[int] = []
        self.at = 0  # the next entry of ``uses``
        self.last = -1  # position of its last instruction in the final order
        self.resident = self.backed = False

    def next_use(self) -> int:
        return self.uses[self.at] if self.at < len(self.uses) else _NEVER


def place(instructions: list[Instruction], hardware: Hardware) -> Residency:
    """Find room for every tile, drop loads of what is there already, and insert the spills that are left."""
    names = _names(instructions, hardware.reuses_loads)
    held = _uses(instructions, names, hardware)
    limits = hardware.limits
    result = Residency(banks=limits.psum_bytes // limits.psum_bank_bytes)
    pools = {
        Memory.SBUF: _Pool(hardware.sbuf_usable, result, Memory.SBUF, hardware.spills),
        Memory.PSUM: _Pool(limits.psum_bytes, result, Memory.PSUM, False),
    }
    _find_peaks(result, held, instructions)
    read_back = {p.ident for i in instructions for p, _ in i.reads if p.memory is Memory.HBM}
    for number, instruction in enumerate(instructions):
        reads = [(names.get(p.ident, p.ident), p) for p, _ in instruction.reads if not p.constant]
        writes = [(names.get(p.ident, p.ident), p) for p, _ in instruction.writes]
        touched = [held[name] for name, p in (*reads, *writes) if p.memory is not Memory.HBM]
        for tile in touched:
            while tile.at < len(tile.uses) and tile.uses[tile.at] <= number:
                tile.at += 1
        if instruction.opcode == "load" and writes:
            name, _ = writes[0]
            if isinstance(name, tuple) and held[name].resident:
                result.reused_bytes += instruction.bytes
                pools[Memory.SBUF].touch(name, held[name])
                continue
        after: list[int] = []
        pinned = {id(t) for t in touched}
        for name, p in (*reads, *writes):
            if p.memory is Memory.HBM:
                continue
            pool, tile = pools[p.memory], held[name]
            if not tile.resident:
                reload = tile.last >= 0 and not (instruction.opcode == "load" and isinstance(name, tuple))
                pool.admit(name, tile, pinned, after, instruction.line)
                if reload:
                    pool.reload(name, tile, after)
                    after = []
            pool.touch(name, tile)
        position = len(result.order)
        for name, p in writes:
            if p.memory is not Memory.HBM:
                held[name].backed = instruction.opcode == "load" and isinstance(name, tuple)
        for tile in touched:
            tile.last = position
        known = [None if p.memory is Memory.HBM and p.ident not in read_back else n for n, p in writes]
        result.order.append(Placed(instruction, [n for n, _ in reads], known, after))
    return result


def _names(instructions: list[Instruction], reuse: bool) -> dict[int, Hashable]:
    """A name per tile; tiles filled once, whole, by loads of the same data share one."""
    if not reuse:
        return {}
    writes: dict[int, int] = {}
    for instruction in instructions:
        for p, _ in instruction.writes:
            writes[p.ident] = writes.get(p.ident, 0) + 1
    names: dict[int, Hashable] = {}
    for instruction in instructions:
        if instruction.opcode == "load" and instruction.pattern is not None:
            (source, _), (target, box) = instruction.reads[0], instruction.writes[0]
            whole = all(low == 0 and high == n for (low, high), n in zip(box, target.shape, strict=True))
            if source.constant and whole and writes[target.ident] == 1:
                names[target.ident] = (source.ident, instruction.pattern, target.shape, target.free_bytes)
    return names


def _uses(
    instructions: list[Instruction], names: dict[int, Hashable], hardware: Hardware
) -> dict[Hashable, _Held]:
    held: dict[Hashable, _Held] = {}
    for number, instruction in enumerate(instructions):
        for p, _ in (*instruction.reads, *instruction.writes):
            if p.memory is Memory.HBM:
                continue
            name = names.get(p.ident, p.ident)
            tile = held.get(name)
            if tile is None:
                size = p.free_bytes
                if p.memory is Memory.PSUM:  # whole banks
                    size = -(-size // hardware.limits.psum_bank_bytes) * hardware.limits.psum_bank_bytes
                tile = held[name] = _Held(p, size)
            tile.uses.append(number)
    return held


def _find_peaks(result: Residency, held: dict[Hashable, _Held], instructions: list[Instruction]) -> None:
    changes: dict[Memory, list[int]] = {m: [0] * (len(instructions) + 1) for m in result.peak}
    for tile in held.values():
        changes[tile.memory][tile.uses[0]] += tile.bytes
        changes[tile.memory][tile.uses[-1] + 1] -= tile.bytes
    for memory, steps in changes.items():
        alive = 0
        for number, step in enumerate(steps[:-1]):
            alive += step
            if alive > result.peak[memory]:
                result.peak[memory] = alive
                result.peak_line[memory] = instructions[number].line


class _Pool:
    """One on-chip memory: what is in it, and what leaves first."""

    def __init__(self, capacity: int, result: Residency, memory: Memory, spills: bool) -> None:
        self.capacity, self.result, self.memory, self.spills = capacity, result, memory, spills
        self.used = 0
        self.order: list[tuple[int, int, int, Hashable, _Held]] = []
        self.count = 0

    def touch(self, name: Hashable, tile: _Held) -> None:
        self.count += 1
        heapq.heappush(self.order, (-tile.next_use(), self.count, self.count, name, tile))

    def admit(self, name: Hashable, tile: _Held, pinned: set[int], after: list[int], line: int) -> None:
        """Make room for ``tile``; the ends of what leaves are added to ``after``."""
        kept = []
        while self.used + tile.bytes > self.capacity and self.order:
            entry = heapq.heappop(self.order)
            other = entry[4]
            if not other.resident or -entry[0] != other.next_use():
                continue  # an outdated entry
            if id(other) in pinned:
                kept.append(entry)
                continue
            if other.next_use() != _NEVER and not self.spills and not other.backed:
                kept.append(entry)
                break
            self._evict(other)
            after.append(other.last)
        for entry in kept:
            heapq.heappush(self.order, entry)
        tile.resident = True
        self.used += tile.bytes
        if self.memory is Memory.PSUM and self.used > self.capacity:
            banks = self.used * self.result.banks // self.capacity
            self.result.crowded[line] = max(banks, self.result.crowded.get(line, 0))

    def _evict(self, tile: _Held) -> None:
        tile.resident = False
        self.used -= tile.bytes
        if tile.next_use() != _NEVER and not tile.backed:
            size = tile.bytes * tile.partitions
            self.result.saved_bytes += size
            self.result.spilled[tile.line] = self.result.spilled.get(tile.line, 0) + size
            self.result.order.append(Placed(_transfer("spill", tile), [], [], [tile.last]))
            tile.last = len(self.result.order) - 1
            tile.backed = True

    def reload(self, name: Hashable, tile: _Held, after: list[int]) -> None:
        size = tile.bytes * tile.partitions
        self.result.reloaded_bytes += size
        self.result.spilled[tile.line] = self.result.spilled.get(tile.line, 0) + size
        self.result.order.append(Placed(_transfer("reload", tile), [], [name], [*after, tile.last]))
        tile.last = len(self.result.order) - 1


def _transfer(opcode: str, tile: _Held) -> Instruction:
    instruction = Instruction(opcode, (DMA,), tile.line, tile.partitions, tile.bytes // 4)
    instruction.bytes = tile.bytes * tile.partitions
    instruction.descriptors = tile.partitions
    return instruction
