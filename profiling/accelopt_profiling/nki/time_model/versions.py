"""Tells apart the values that one tile holds in turn: what overwrites all of a tile needs none of what was in it.

The compiler places such values in buffers of their own, as it does tiles that are allocated in the loop.
"""

from __future__ import annotations

from accelopt_profiling.nki.data.instruction import BlockInfo, Region
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.time_model.step import ScheduledStep


def tell_versions_apart(steps: list[ScheduledStep]) -> None:
    """Give each value of a tile in SBUF that was used before it is overwritten a block of its own."""
    current: dict[BlockInfo, BlockInfo] = {}
    used: set[BlockInfo] = set()
    for step in steps:
        step.reads = [(current.get(block, block), box) for block, box in step.reads]
        read = {block for block, _ in step.reads}
        used |= read
        written: list[Region] = []
        for block, box in step.writes:
            now = current.get(block, block)
            whole = all(
                low == 0 and high == size for (low, high), size in zip(box, block.shape, strict=False)
            )
            if block.memory is MemorySpace.SBUF and whole and now in used and now not in read:
                now = current[block] = _copy(block)
            written.append((now, box))
        step.writes = written


def _copy(block: BlockInfo) -> BlockInfo:
    copy = BlockInfo(block.ident, block.memory, block.shape, 1, block.name, block.line, block.constant)
    copy.free_bytes = block.free_bytes
    return copy
