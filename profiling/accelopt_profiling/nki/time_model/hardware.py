"""The constants of the time model, read from ``targets/<name>.json``; a source stands beside each number there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from accelopt_profiling.nki.data.memory_space import CoreLimits
from accelopt_profiling.targets.target import UnknownTargetError, load_target, target_names


@dataclass(frozen=True)
class Compiler:
    """The known transformations of the compiler; ``compiler`` in the target's file names the sources.

    ``lookahead`` and ``transfers_ahead`` are how many instructions back an idle gap of a compute engine, or of the DMA
    queues, may still be filled. ``rotates_overwritten`` tells that a tile which is overwritten as a whole gets another
    buffer. ``buffers`` is how many tiles of one allocation the compiler keeps for each that is
    alive at once. ``reserve_bytes`` (per partition) stay free where tiles are spilled, so that transfers can run ahead.
    ``transposes_loads``: a transposed load of float32 is a load and a transpose on TensorE. ``shares_across_loops``: a
    value that is made again is kept also where other values are made in between. ``generates_descriptors``: each
    transfer is issued while the kernel runs (DGE), so it keeps all queues waiting.
    """

    shares_values: bool = False
    streams_loads: bool = False
    spills: bool = False
    psum_operands: bool = False
    scalar_first: bool = False
    rotates_overwritten: bool = False
    transposes_loads: bool = False
    shares_across_loops: bool = True
    generates_descriptors: bool = True
    buffers: float = 2.0
    reserve_bytes: int = 0
    lookahead: int = 0
    transfers_ahead: int = 512


#: The target whose file holds what the compiler of a dialect does. ``compiler_<dialect>`` in another target's file
#: states what it does differently there.
_HOMES = {"beta1": "trn1", "current": "trn2"}

#: No compiler: a program runs as it is written. Loads and stores are issued by different rings all the same.
AS_WRITTEN = Compiler()


@dataclass(frozen=True)
class Hardware:
    """One NeuronCore of a generation. Bandwidths in GB/s, clocks in GHz, times in ns, costs in engine cycles.

    ``shared_gbps`` is what two cores that run one launch have of HBM together.
    ``compiler`` is that of the dialect kernels for this generation are usually written in, ``compilers`` those by
    dialect.
    """

    name: str
    title: str
    generation: int
    limits: CoreLimits
    sbuf_usable: int
    clocks: dict[str, float]
    hbm_gbps: float
    fp32_tflops: float
    bf16_tflops: float
    vector_gops: float
    dma_queues: int
    dma_gbps: float
    shared_gbps: float
    descriptor_ns: float
    piece_bytes: float
    dma_latency_ns: float
    transfer_ns: float
    launch_ns: float
    fp32_overhead: float
    vector_result_ns: float
    pair_cycles: float
    full_clock_use: float
    clock_window_ns: float
    bf16_copy_speedup: float
    bf16_copy_speedup_psum: float
    bf16_pair_speedup: float
    min_cycles: float
    vector_overhead: float
    scalar_overhead: float
    matmul_overhead: float
    semaphore_ns: float
    gpsimd_overhead: float
    vector_transpose_cycles: float
    reciprocal_cycles: float
    fp32_passes: float
    fp32_onezero_passes: float
    low: float
    high: float
    compiler: Compiler
    compilers: dict[str, Compiler]

    @property
    def elementwise_gops(self) -> float:
        """What VectorE and ScalarE compute together: the published rate, or what their clocks allow where that is
        more."""
        return max(
            self.vector_gops, self.limits.partitions * (self.clocks["VectorE"] + self.clocks["ScalarE"])
        )

    def compiler_of(self, dialect: str) -> Compiler:
        """Return what the compiler of ``dialect`` does; the usual one's where none is known."""
        return self.compilers.get(dialect, self.compiler)


@lru_cache(maxsize=16)
def hardware(name: str) -> Hardware:
    """Return the constants of ``name`` ("trn1", "trn2", "trn3").

    Raises:
        UnknownTargetError: there is no such target, or NKI kernels do not run on it; the message lists those there are.
    """
    target = load_target(name)
    if target.kind != "neuron":
        choices = ", ".join(target_names("neuron"))
        raise UnknownTargetError(f"NKI kernels do not run on {target.title}; choose one of: {choices}")
    data = target.data

    def value(group: str, key: str) -> Any:
        return data[group][key]["value"]

    limits = CoreLimits(
        **{k: value("limits", k) for k in (
            "partitions", "sbuf_bytes", "psum_bytes", "psum_bank_bytes", "stationary_columns", "moving_columns",
        )}
    )  # fmt: skip
    return Hardware(
        name=data["name"], title=data["title"], generation=data["generation"], limits=limits,
        sbuf_usable=value("limits", "sbuf_usable_bytes"),
        clocks={engine: entry["value"] for engine, entry in data["clock_ghz"].items()},
        hbm_gbps=value("peaks", "hbm_gbps"), fp32_tflops=value("peaks", "matmul_fp32_tflops"),
        bf16_tflops=value("peaks", "matmul_bf16_tflops"), vector_gops=value("peaks", "vector_gops"),
        dma_queues=value("dma", "queues"),
        dma_gbps=value("dma", "gbps"), shared_gbps=value("dma", "shared_gbps"),
        descriptor_ns=value("dma", "descriptor_ns"), piece_bytes=value("dma", "piece_bytes"),
        dma_latency_ns=value("dma", "latency_ns"),
        min_cycles=value("cost", "min_cycles"),
        vector_overhead=value("cost", "vector_overhead_cycles"),
        scalar_overhead=value("cost", "scalar_overhead_cycles"),
        matmul_overhead=value("cost", "matmul_overhead_cycles"), semaphore_ns=value("cost", "semaphore_ns"),
        gpsimd_overhead=value("cost", "gpsimd_overhead_cycles"),
        vector_transpose_cycles=value("cost", "vector_transpose_cycles"),
        reciprocal_cycles=value("cost", "reciprocal_cycles_per_element"), fp32_passes=value("cost", "fp32_passes"),
        fp32_onezero_passes=value("cost", "fp32_onezero_passes"),
        transfer_ns=value("dma", "transfer_ns"), launch_ns=value("cost", "launch_ns"),
        fp32_overhead=value("cost", "fp32_overhead_cycles"),
        vector_result_ns=value("cost", "vector_result_ns"), pair_cycles=value("cost", "pair_cycles_per_element"),
        full_clock_use=value("cost", "full_clock_use"), clock_window_ns=value("cost", "clock_window_ns"),
        bf16_copy_speedup=value("cost", "bf16_copy_speedup"),
        bf16_copy_speedup_psum=value("cost", "bf16_copy_speedup_psum"),
        bf16_pair_speedup=value("cost", "bf16_pair_speedup"),
        low=value("interval", "low"), high=value("interval", "high"),
        compiler=_compiler(data["compiler"]),
        compilers={
            dialect: _compiler(load_target(home).data["compiler"] | data.get(f"compiler_{dialect}", {}))
            for dialect, home in _HOMES.items()
        },
    )  # fmt: skip


def _compiler(entries: dict[str, Any]) -> Compiler:
    return Compiler(**{key: entry["value"] for key, entry in entries.items()})
