"""``nki.isa``: the two cores of a launch over ``kernel[2]`` wait for one another and exchange tiles."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from accelopt_profiling.nki.compute.operations import copy_values
from accelopt_profiling.nki.data.instruction import BARRIER, GPSIMD, TracedInstruction
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.instructions.enums import DmaEngine
from accelopt_profiling.nki.instructions.operands import on_chip


def core_barrier(data: Any, cores: Any, engine: Any) -> Any:
    """Wait for the other core of the launch; one alone waits for nobody."""
    machine = current()
    if not isinstance(cores, (tuple, list)) or sorted(cores) != [0, 1]:
        machine.fault("unsupported", f"core_barrier is for the cores (0, 1), not for {cores!r}.")
    tile = machine.operand(data, "data")
    if tile.block.info.memory is not MemorySpace.HBM or not machine.is_shared(tile):
        machine.fault("unsupported", "core_barrier waits for data in nl.shared_hbm.")
    if prod(machine.grid) > 1:
        _meet(machine, "core_barrier", None)


#: Bytes of a partition that GpSimdE's own DMA sends at most, by the bytes of an element.
_GPSIMD_DMA_BYTES = {4: 1024, 2: 512, 1: 256}


def sendrecv(
    src: Any, dst: Any, send_to_rank: Any, recv_from_rank: Any, pipe_id: Any, dma_engine: Any,
) -> Any:  # fmt: skip
    """Send ``src`` to the ``dst`` of one of the two cores of a launch, while one of them sends its own here."""
    machine = current()
    source, target = on_chip(machine, src, "src"), on_chip(machine, dst, "dst")
    ranks = int(send_to_rank), int(recv_from_rank)
    if any(t.block.info.memory is not MemorySpace.SBUF for t in (source, target)):
        machine.fault("unsupported", "sendrecv moves from SBUF to SBUF.")
    if any(rank not in (0, 1) for rank in ranks):
        machine.fault("out-of-bounds", f"The two cores are 0 and 1, not {ranks}.")
    size = prod(source.shape[1:]) * source.dtype.itemsize
    if dma_engine is DmaEngine.gpsimd_dma and size > _GPSIMD_DMA_BYTES.get(source.dtype.itemsize, size):
        machine.fault("capacity", f"gpsimd_dma sends fewer bytes of a partition than {size}.")
    key = "sendrecv", int(pipe_id)
    sent = _meet(machine, key, (source, ranks[0]))[ranks[1]]
    if machine.group is not None and sent[1] != machine.group.running:
        machine.fault(
            "unsupported", f"Core {ranks[1]} sends to core {sent[1]}, not to the one that waits for it."
        )
    if (sent[0].shape, sent[0].dtype) != (target.shape, target.dtype):
        message = (
            f"src is {sent[0].shape} {sent[0].dtype}, dst {target.shape} {target.dtype}; both must agree."
        )
        machine.fault("out-of-bounds", message)
    machine.transfers.transfer(target, [sent[0]], copy_values, False)
    _meet(machine, key, None)  # what was sent may be written again


def _meet(machine: Machine, key: object, value: Any) -> Sequence[Any]:
    """Wait for the other core; see ``ProgramGroup.meet``."""
    what = key if isinstance(key, str) else "sendrecv"
    if machine.group is None:
        return machine.fault("unsupported", f"{what} is for the two cores of a launch over kernel[2].")
    machine.recorder.forbid_replay()
    machine.stream.issue(TracedInstruction(BARRIER, (GPSIMD,), machine.diagnostics.line(), 0, 0))
    met = machine.group.meet(key, value)
    if met is None:
        return machine.fault("unsupported", f"{what} waits for the other core, which does not come here.")
    return met
