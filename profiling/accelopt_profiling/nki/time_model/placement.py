"""Places tiles in SBUF and PSUM over time: buffers in rotation, loads too large to keep, spills, PSUM banks.

The Beta 1 compiler places tiles itself, and how it chooses is not documented. This layer assumes what published
profiles agree with:

- Tiles of one allocation take turns in a number of buffers: as many as are alive at once, times ``buffers``, as far as
  there is room.
- Room of ``reserve_bytes`` is held back so that transfers can run ahead. What does not fit then is cut into the pieces
  it is written in, and leaves by allocation, the largest at the fullest place first. Tiles filled by loads are loaded
  again at each use; others are spilled, that which is needed last first (Belady).
- Room is given out again in the order in which it became free.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, prod

import numpy as np
import numpy.typing as npt

from accelopt_profiling.nki.data.coverage import Box
from accelopt_profiling.nki.data.instruction import BlockInfo
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.time_model.hardware import Compiler, Hardware
from accelopt_profiling.nki.time_model.pieces import cut_into_pieces
from accelopt_profiling.nki.time_model.step import RELOAD, SPILL, Kinds, ScheduledStep

_NEVER = 1 << 60

#: Where tiles come from: memory, line, name and bytes per partition. Tiles of one allocation share buffers.
Allocation = tuple[MemorySpace, int, str, int]
_Profile = npt.NDArray[np.int64]


@dataclass
class Residency:
    """The steps after placement, and the tiles that did not fit.

    ``peak`` is the most that is alive at once, from a tile's first use to its last, in bytes per partition, and
    ``peak_line`` the line where it is. ``predecessor`` maps a tile to the one whose buffer it takes over.
    Saved and reloaded is what was computed on the chip; what was loaded and not changed is loaded again instead, which
    counts as far as the kernel does not load it as often by itself. ``spilled`` and ``loaded_again`` have the bytes of
    both by the line where the tile was made.
    """

    order: list[ScheduledStep] = field(default_factory=list)
    peak: dict[MemorySpace, int] = field(default_factory=lambda: {MemorySpace.SBUF: 0, MemorySpace.PSUM: 0})
    peak_line: dict[MemorySpace, int] = field(default_factory=dict)
    saved_bytes: int = 0
    reloaded_bytes: int = 0
    reused_bytes: int = 0
    spilled: dict[int, int] = field(default_factory=dict)
    loaded_again: dict[int, int] = field(default_factory=dict)
    banks: int = 8
    crowded: dict[int, int] = field(default_factory=dict)  # line -> PSUM banks alive at once, where too many
    predecessor: dict[BlockInfo, BlockInfo] = field(default_factory=dict)


class _Tile:
    """A tile's uses in program order, and where it is now."""

    __slots__ = (
        "at", "backed", "bytes", "info", "last", "leaves", "loaded", "resident", "saved", "seen", "streamed", "uses",
        "writes",
    )  # fmt: skip

    def __init__(self, block: BlockInfo, size: int) -> None:
        self.info, self.bytes = block, size
        self.uses: list[int] = []
        self.writes = self.at = 0
        self.last = -1  # position of its last step in the final order
        self.loaded = self.resident = self.seen = self.backed = self.leaves = self.streamed = self.saved = (
            False
        )

    def next_use(self) -> int:
        return self.uses[self.at] if self.at < len(self.uses) else _NEVER


def place(
    steps: list[ScheduledStep], kinds: Kinds, hardware: Hardware, own_loads: Mapping[int, int] | None = None
) -> Residency:
    """Find room for every tile, and add spills and reloads of tiles that find none.

    ``own_loads`` are the bytes that the kernel loads again into tiles that are kept instead, by the tile's ``ident``.
    """
    own = dict(own_loads or {})
    cores = {step.core for step in steps}
    if len(cores) > 1:  # each has its own memory
        parts = [
            _place([step for step in steps if step.core == core], kinds, hardware, own)
            for core in sorted(cores)
        ]
        return _side_by_side(parts)
    return _place(steps, kinds, hardware, own)


def _place(
    steps: list[ScheduledStep], kinds: Kinds, hardware: Hardware, own_loads: dict[int, int]
) -> Residency:
    placing = _Placing(steps, hardware, kinds.compiler)
    if kinds.compiler.spills and placing.overflows and cut_into_pieces(steps):
        whole, placing = placing, _Placing(steps, hardware, kinds.compiler)
        placing.result.peak, placing.result.peak_line = whole.result.peak, whole.result.peak_line
    result = placing.result
    if kinds.compiler.spills and placing.choose_what_leaves():
        placing.rotate(_NEVER)  # whether there is room is found out on the way
        steps = placing.spill(kinds, own_loads)
    else:
        placing.rotate(max(0, placing.room - result.peak[MemorySpace.SBUF]))
    _give_banks(steps, hardware, result)
    result.order = steps
    return result


def _side_by_side(parts: Sequence[Residency]) -> Residency:
    """Return what cores that run one launch hold, each on its own, with their steps in the order of the program."""
    result = Residency(banks=parts[0].banks)
    steps = sorted(
        ((step.number, core, at) for core, part in enumerate(parts) for at, step in enumerate(part.order)),
        key=lambda entry: entry[0],
    )
    places = {(core, at): place for place, (_, core, at) in enumerate(steps)}
    for core, part in enumerate(parts):
        for step in part.order:
            if step.after >= 0:
                step.after = places[core, step.after]
        for memory, size in part.peak.items():
            if size > result.peak[memory]:
                result.peak[memory], result.peak_line[memory] = size, part.peak_line[memory]
        result.saved_bytes += part.saved_bytes
        result.reloaded_bytes += part.reloaded_bytes
        for total, sizes in ((result.spilled, part.spilled), (result.loaded_again, part.loaded_again)):
            for line, size in sizes.items():
                total[line] = total.get(line, 0) + size
        for line, banks in part.crowded.items():
            result.crowded[line] = max(banks, result.crowded.get(line, 0))
        result.predecessor |= part.predecessor
    result.order = [parts[core].order[at] for _, core, at in steps]
    return result


class _Placing:
    def __init__(self, steps: list[ScheduledStep], hardware: Hardware, compiler: Compiler) -> None:
        self.steps, self.room, self.compiler = steps, hardware.sbuf_usable, compiler
        limits = hardware.limits
        self.result = Residency(banks=limits.psum_bytes // limits.psum_bank_bytes)
        self.tiles = _tiles(steps, limits.psum_bank_bytes)
        self.allocations: dict[Allocation, list[_Tile]] = defaultdict(list)
        for tile in self.tiles.values():
            block = tile.info
            self.allocations[block.memory, block.line, block.name, tile.bytes].append(tile)
        self.alive: dict[Allocation, _Profile] = {}
        self._find_peaks(limits.psum_bytes, limits.psum_bank_bytes)

    def _find_peaks(self, psum_bytes: int, bank_bytes: int) -> None:
        for memory in self.result.peak:
            tiles = [t for t in self.tiles.values() if t.info.memory is memory]
            alive = self._profile(tiles)
            if not tiles:
                continue
            at = int(alive.argmax())
            self.result.peak[memory] = int(alive[at])
            self.result.peak_line[memory] = self.steps[at].line
            if memory is MemorySpace.PSUM:
                for tile in tiles:
                    banks = int(alive[tile.uses[0]]) // bank_bytes
                    if banks * bank_bytes > psum_bytes:
                        line = self.steps[tile.uses[0]].line
                        self.result.crowded[line] = max(banks, self.result.crowded.get(line, 0))

    def _profile(self, tiles: Sequence[_Tile], apart: int = _NEVER) -> _Profile:
        """Bytes alive at each step; a tile does not count between uses more than ``apart`` instructions apart."""
        change = np.zeros(len(self.steps) + 1, dtype=np.int64)
        for tile in tiles:
            uses = tile.uses
            change[uses[0]] += tile.bytes
            change[uses[-1] + 1] -= tile.bytes
            if apart < _NEVER:
                for one, other in pairwise(uses):
                    if other - one > apart:
                        change[one + 1] -= tile.bytes
                        change[other] += tile.bytes
        return np.cumsum(change)

    @property
    def overflows(self) -> bool:
        """Whether what is alive at once does not fit, with room held back so that transfers can run ahead."""
        return self.result.peak[MemorySpace.SBUF] > self.room - self.compiler.reserve_bytes

    def choose_what_leaves(self) -> bool:
        """Mark the allocations that cannot stay on the chip; False if all can."""
        if not self.overflows:
            return False
        profiles = {k: self._profile(t) for k, t in self.allocations.items() if k[0] is MemorySpace.SBUF}
        total = np.sum(list(profiles.values()), axis=0)
        candidates = dict.fromkeys(profiles)  # in program order: of several that are largest the first leaves
        while total.max() > self.room - self.compiler.reserve_bytes and candidates:
            at = int(total.argmax())
            largest = max(candidates, key=lambda k: int(profiles[k][at]))
            if not profiles[largest][at]:
                break
            del candidates[largest]
            tiles = self.allocations[largest]
            streamed = self.compiler.streams_loads and all(t.loaded and t.writes == 1 for t in tiles)
            for tile in tiles:
                tile.leaves, tile.streamed = True, streamed
            total = total - profiles[largest] + self._profile(tiles, self.compiler.lookahead)
        return True

    def rotate(self, spare: int) -> None:
        """Let the tiles of an allocation that stays take turns in as many buffers as the compiler gives it: those that
        it needs, and more out of ``spare`` bytes."""
        requests = []
        for allocation, tiles in self.allocations.items():
            if allocation[0] is MemorySpace.SBUF and not tiles[0].leaves:
                at_once = _most_alive(tiles)
                if len(tiles) > at_once:
                    requests.append((at_once * allocation[3], at_once, tiles))
        requests.sort(key=lambda w: w[0])
        more = [0] * len(requests)
        for number in range(1, ceil(self.compiler.buffers)):  # a second buffer for all before a third for one
            for n, (_, at_once, tiles) in enumerate(requests):
                size = max(1, tiles[0].bytes)
                share = min(1.0, self.compiler.buffers - number)
                added = min(int(at_once * share), spare // size)
                spare -= added * size
                more[n] += added
        for (_, at_once, tiles), extra in zip(requests, more, strict=True):
            tiles.sort(key=lambda t: t.uses[0])
            for earlier, later in zip(tiles, tiles[at_once + extra :], strict=False):
                self.result.predecessor[later.info] = earlier.info

    def spill(self, kinds: Kinds, own_loads: dict[int, int]) -> list[ScheduledStep]:
        """Return the steps with spills and reloads in between."""
        return _Spilling(self, kinds, own_loads).run()


def _tiles(steps: list[ScheduledStep], bank_bytes: int) -> dict[BlockInfo, _Tile]:
    tiles: dict[BlockInfo, _Tile] = {}
    for number, step in enumerate(steps):
        for regions, written in ((step.reads, 0), (step.writes, 1)):
            for block, _ in regions:
                if block.memory is MemorySpace.HBM:
                    continue
                tile = tiles.get(block)
                if tile is None:
                    size = block.free_bytes
                    if block.memory is MemorySpace.PSUM:  # whole banks
                        size = -(-size // bank_bytes) * bank_bytes
                    tile = tiles[block] = _Tile(block, size)
                tile.writes += written
                if not tile.uses or tile.uses[-1] != number:
                    tile.uses.append(number)
        if step.opcode == "load" and step.instruction is not None and step.instruction.reads[0][0].constant:
            for block, _ in step.writes:
                if block in tiles:
                    tiles[block].loaded = True
    return tiles


def _most_alive(tiles: list[_Tile]) -> int:
    changes = sorted([(t.uses[0], 1) for t in tiles] + [(t.uses[-1] + 1, -1) for t in tiles])
    alive = most = 0
    for _, change in changes:
        alive += change
        most = max(most, alive)
    return most


class _Spilling:
    """Walk through the program with a full SBUF."""

    def __init__(self, placing: _Placing, kinds: Kinds, own_loads: dict[int, int]) -> None:
        self.own_loads = own_loads
        self.steps = placing.steps
        self.tiles = placing.tiles
        self.result = placing.result
        self.kinds = kinds
        self.capacity = placing.room - placing.compiler.reserve_bytes
        self.lookahead = placing.compiler.lookahead
        self.used = 0
        self.free: deque[tuple[int, int]] = deque([(placing.room, -1)])  # bytes, the step that freed them
        self.leaving: list[tuple[int, int, _Tile]] = []
        self.pushed = 0
        self.order: list[ScheduledStep] = []

    def run(self) -> list[ScheduledStep]:
        for number, step in enumerate(self.steps):
            touched = [self.tiles[p] for p, _ in (*step.reads, *step.writes) if p.memory is MemorySpace.SBUF]
            for tile in touched:
                while tile.at < len(tile.uses) and tile.uses[tile.at] <= number:
                    tile.at += 1
            for tile in touched:
                if not tile.resident:
                    self._admit(tile, touched, number, step)
            for block, _ in step.writes:
                if block.memory is MemorySpace.SBUF:
                    tile = self.tiles[block]
                    tile.backed = step.opcode == "load" and tile.loaded and tile.writes == 1
                    tile.saved = False
            position = len(self.order)
            self.order.append(step)
            for tile in touched:
                tile.last = position
            for tile in touched:
                self._after_use(tile, step.number)
        return self.order

    def _after_use(self, tile: _Tile, number: int) -> None:
        if not tile.resident:
            return
        following = tile.next_use()
        far = following == _NEVER or self.steps[following].number - number > self.lookahead
        if following == _NEVER or (tile.streamed and tile.backed and far):
            self._leave(tile)
        elif tile.leaves:
            self.pushed += 1
            heapq.heappush(self.leaving, (-following, self.pushed, tile))

    def _leave(self, tile: _Tile) -> None:
        tile.resident = False
        self.used -= tile.bytes
        self.free.append((tile.bytes, tile.last))

    def _admit(self, tile: _Tile, touched: list[_Tile], number: int, step: ScheduledStep) -> None:
        entries = []
        while self.used + tile.bytes > self.capacity and self.leaving:
            entry = heapq.heappop(self.leaving)
            other = entry[2]
            if not other.resident or -entry[0] != other.next_use():
                continue  # an outdated entry
            if any(other is t for t in touched):
                entries.append(entry)
                continue
            if not other.backed:
                other.backed = other.saved = True
                self._move(self.kinds.transfer(SPILL, other.info, step), other)
            self._leave(other)
        for entry in entries:
            heapq.heappush(self.leaving, entry)
        tile.resident = True
        self.used += tile.bytes
        freed = self._take(tile.bytes)
        if tile.seen:
            share = self._needed(tile, number) if tile.streamed else 1.0
            reload = self.kinds.transfer(RELOAD, tile.info, step, share)
            reload.after = freed
            self._move(reload, tile)
        else:
            step.after = max(step.after, freed)
        tile.seen = True

    def _take(self, size: int) -> int:
        """Use up room, the longest free first; the position of the last step it waits for."""
        after = -1
        while size > 0 and self.free:
            room, freed_by = self.free.popleft()
            after = max(after, freed_by)
            if room > size:
                self.free.appendleft((room - size, freed_by))
            size -= room
        return after

    def _move(self, transfer: ScheduledStep, tile: _Tile) -> None:
        tile.last = len(self.order)
        self.order.append(transfer)
        line, size, bytes_by_line = tile.info.line, transfer.bytes, self.result.spilled
        if not transfer.loads:
            self.result.saved_bytes += size
        elif tile.saved:
            self.result.reloaded_bytes += size
        else:
            own = min(size, self.own_loads.get(tile.info.ident, 0))
            self.own_loads[tile.info.ident] = self.own_loads.get(tile.info.ident, 0) - own
            size, bytes_by_line = size - own, self.result.loaded_again
        bytes_by_line[line] = bytes_by_line.get(line, 0) + size

    def _needed(self, tile: _Tile, number: int) -> float:
        """Return the share of a tile that is read before it leaves again."""
        boxes: set[Box] = set()
        before = self.steps[number].number
        for use in tile.uses[max(0, tile.at - 1) :]:
            if self.steps[use].number - before > self.lookahead:
                break
            before = self.steps[use].number
            boxes.update(box for block, box in self.steps[use].reads if block is tile.info)
        read = sum(prod(high - low for low, high in box) for box in boxes)
        return min(1.0, read / max(1, prod(tile.info.shape))) or 1.0


def _give_banks(steps: list[ScheduledStep], hardware: Hardware, result: Residency) -> None:
    """Let each PSUM tile wait for the bank that has been free the longest."""
    bank = hardware.limits.psum_bank_bytes
    last: dict[BlockInfo, int] = {}
    for position, step in enumerate(steps):
        for block, _ in (*step.reads, *step.writes):
            if block.memory is MemorySpace.PSUM:
                last[block] = position
    ends: dict[int, list[BlockInfo]] = defaultdict(list)
    for block, position in last.items():
        ends[position].append(block)
    free: deque[int] = deque([-1] * result.banks)
    begun: set[BlockInfo] = set()
    for position, step in enumerate(steps):
        for block, _ in step.writes:
            if block.memory is MemorySpace.PSUM and block not in begun:
                begun.add(block)
                for _ in range(-(-block.free_bytes // bank)):
                    if free:
                        step.after = max(step.after, free.popleft())
        for block in ends.get(position, ()):
            free.extend([position] * (-(-block.free_bytes // bank)))
