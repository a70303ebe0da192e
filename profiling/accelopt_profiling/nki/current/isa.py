"""``nki.isa``: the instructions that are emulated, by name."""

from __future__ import annotations

from typing import Any

from accelopt_profiling.nki.current import (
    cores,
    elementwise,
    gathers,
    matrix,
    microscaling,
    moves,
    reductions,
    runtime_numbers,
    select,
)
from accelopt_profiling.nki.current.enums import (
    DgeMode,
    DmaEngine,
    MatmulPerfMode,
    NkiEngine,
    OobMode,
)
from accelopt_profiling.nki.frontend.isa import NcVersion, ReduceCmd, get_nc_version

FUNCTIONS = (
    moves.dma_copy, moves.dma_compute, moves.dma_transpose, moves.tensor_copy, moves.tensor_copy_predicated,
    moves.nc_stream_shuffle, moves.iota, moves.affine_select, gathers.nc_n_gather, cores.core_barrier, cores.sendrecv,
    matrix.nc_matmul, matrix.nc_transpose, microscaling.nc_matmul_mx, microscaling.quantize_mx,
    select.nonzero_with_count,
    elementwise.activation, elementwise.activation_reduce, elementwise.exponential, elementwise.tensor_tensor,
    elementwise.tensor_scalar, elementwise.tensor_scalar_reduce, elementwise.scalar_tensor_tensor,
    elementwise.reciprocal, elementwise.memset,
    reductions.tensor_reduce, reductions.tensor_partition_reduce, reductions.tensor_tensor_scan, reductions.bn_stats,
    reductions.bn_aggr, reductions.tensor_scalar_cumulative, gathers.local_gather, gathers.sequence_bounds,
    elementwise.activate2, select.select_reduce, select.range_select,
    select.max8, select.nc_find_index8, select.nc_match_replace8,
    runtime_numbers.register_alloc, runtime_numbers.register_move, runtime_numbers.register_load,
    runtime_numbers.register_store, runtime_numbers.scalar_load, runtime_numbers.scalar_store,
)  # fmt: skip


def get_nc_sub_version() -> int:
    """Return the revision of the core within its generation: the first one is emulated."""
    return 0


def names() -> dict[str, Any]:
    """Return the module's content."""
    table: dict[str, Any] = {f.__name__: f for f in FUNCTIONS}
    table.update({f"{member.name}_engine": member for member in NkiEngine})
    table.update(
        engine=NkiEngine, dge_mode=DgeMode, oob_mode=OobMode, reduce_cmd=ReduceCmd, nc_version=NcVersion,
        matmul_perf_mode=MatmulPerfMode, dma_engine=DmaEngine, get_nc_version=get_nc_version,
        get_nc_sub_version=get_nc_sub_version,
        VirtualRegister=runtime_numbers.KernelRegister, NkiScalar=runtime_numbers.KernelNkiScalar,
    )  # fmt: skip
    return table
