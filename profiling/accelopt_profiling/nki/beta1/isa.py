"""``neuronxcc.nki.isa``: one function per hardware instruction, by name; each returns the tile it writes."""

from __future__ import annotations

from typing import Any

from accelopt_profiling.nki.beta1.elementwise import (
    activation,
    activation_reduce,
    reciprocal,
    scalar_tensor_tensor,
    tensor_scalar,
    tensor_scalar_reduce,
    tensor_tensor,
)  # fmt: skip
from accelopt_profiling.nki.beta1.engines import Beta1Engine
from accelopt_profiling.nki.beta1.matrix import nc_matmul, nc_transpose
from accelopt_profiling.nki.beta1.moves import (
    affine_select,
    dma_copy,
    iota,
    memset,
    tensor_copy,
    tensor_copy_predicated,
)  # fmt: skip
from accelopt_profiling.nki.beta1.reductions import bn_aggr, bn_stats, tensor_reduce, tensor_tensor_scan
from accelopt_profiling.nki.beta1.returned import (
    dma_transpose,
    dropout,
    local_gather,
    max8,
    nc_find_index8,
    nc_match_replace8,
    nc_stream_shuffle,
    range_select,
    select_reduce,
    sequence_bounds,
    tensor_partition_reduce,
    tensor_scalar_cumulative,
)
from accelopt_profiling.nki.current.enums import DgeMode, OobMode
from accelopt_profiling.nki.frontend.isa import NcVersion, ReduceCmd, get_nc_version


def names() -> dict[str, Any]:
    """Return the module's content."""
    functions = (
        nc_matmul, nc_transpose, activation, activation_reduce, tensor_tensor, tensor_scalar, tensor_reduce, reciprocal,
        tensor_copy, tensor_copy_predicated, memset, iota, affine_select, tensor_tensor_scan, scalar_tensor_tensor,
        dma_copy, bn_stats, bn_aggr, get_nc_version, tensor_scalar_reduce,
        dma_transpose, dropout, local_gather, max8, nc_find_index8, nc_match_replace8, nc_stream_shuffle, range_select,
        select_reduce, sequence_bounds, tensor_partition_reduce, tensor_scalar_cumulative,
    )  # fmt: skip
    table: dict[str, Any] = {f.__name__: f for f in functions}
    table.update(
        {f"{member.name}_engine": member for member in Beta1Engine},
        engine=Beta1Engine,
        nc_version=NcVersion,
        reduce_cmd=ReduceCmd,
        dge_mode=DgeMode,
        oob_mode=OobMode,
    )
    return table
