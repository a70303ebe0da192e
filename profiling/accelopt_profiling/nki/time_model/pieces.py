"""Cuts tiles into the pieces in which they are written, so that only what does not fit is spilled.

A tile that is written piece by piece need not lie in SBUF as a whole: the pieces that find no room are saved, and each
is loaded again where it is used. Without this a tile slightly larger than the room that is left would be moved as a
whole for every use of a part of it.
"""

from __future__ import annotations

from itertools import combinations
from math import prod

from accelopt_profiling.nki.data.coverage import Box
from accelopt_profiling.nki.data.instruction import BlockInfo, Region
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.time_model.step import ScheduledStep

#: A tile written in more different pieces is left whole: whether they overlap is compared pair by pair.
_MOST = 256


def cut_into_pieces(steps: list[ScheduledStep]) -> bool:
    """Replace tiles in SBUF that are written in parts, across all their partitions, by those parts; True if there are
    any."""
    written: dict[BlockInfo, dict[Box, None]] = {}
    for step in steps:
        for block, box in step.writes:
            if block.memory is MemorySpace.SBUF:
                written.setdefault(block, {})[box] = None
    pieces = {
        block: [(box, _piece(block, box)) for box in boxes]
        for block, boxes in written.items()
        if _can_be_cut(block, list(boxes))
    }
    if pieces:
        for step in steps:
            step.reads = [part for region in step.reads for part in _parts(region, pieces)]
            step.writes = [part for region in step.writes for part in _parts(region, pieces)]
    return bool(pieces)


def _can_be_cut(block: BlockInfo, boxes: list[Box]) -> bool:
    if not 1 < len(boxes) <= _MOST or any(box[0] != (0, block.shape[0]) for box in boxes):
        return False
    return not any(_common(one, other) for one, other in combinations(boxes, 2))


def _piece(block: BlockInfo, box: Box) -> BlockInfo:
    shape = tuple(high - low for low, high in box)
    piece = BlockInfo(
        block.ident,
        block.memory,
        shape=shape,
        itemsize=1,
        name=block.name,
        line=block.line,
        constant=block.constant,
    )
    piece.free_bytes = -(-block.free_bytes * prod(shape[1:]) // prod(block.shape[1:]))
    return piece


def _common(one: Box, other: Box) -> Box | None:
    """Return what two boxes have in common."""
    common = tuple((max(a[0], b[0]), min(a[1], b[1])) for a, b in zip(one, other, strict=True))
    return common if all(low < high for low, high in common) else None


def _parts(region: Region, pieces: dict[BlockInfo, list[tuple[Box, BlockInfo]]]) -> list[Region]:
    block, box = region
    if block not in pieces:
        return [region]
    parts: list[Region] = []
    for where, piece in pieces[block]:
        common = _common(where, box)
        if common is not None:
            parts.append(
                (
                    piece,
                    tuple((low - at, high - at) for (low, high), (at, _) in zip(common, where, strict=True)),
                )
            )
    return parts
