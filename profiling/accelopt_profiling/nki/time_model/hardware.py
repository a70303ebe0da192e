"""The constants of the time model, read from ``targets/<name>.json``; a source stands beside each number there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from accelopt_profiling.nki.rules import Limits
from accelopt_profiling.targets.load import UnknownTarget, load_target, target_names


@dataclass(frozen=True)
class Hardware:
    """One NeuronCore of a generation. Bandwidths in GB/s, clocks in GHz, times in ns, costs in engine cycles."""

    name: str
    title: str
    generation: int
    limits: Limits
    sbuf_usable: int
    clocks: dict[str, float]
    hbm_gbps: float
    fp32_tflops: float
    bf16_tflops: float
    dma_queues: int
    dma_gbps: float
    descriptor_ns: float
    dma_latency_ns: float
    dma_element_ns: float
    min_cycles: float
    access_cycles: float
    semaphore_ns: float
    gpsimd_overhead: float
    reciprocal_cycles: float
    fp32_passes: float
    fp32_onezero_passes: float
    reuses_loads: bool
    spills: bool
    scale: float
    low: float
    high: float


@lru_cache(maxsize=16)
def hardware(name: str) -> Hardware:
    """The constants of ``name`` ("trn1", "trn2", "trn3").

    Raises:
        UnknownTarget: there is no such target, or NKI kernels do not run on it; the message lists those there are.
    """
    target = load_target(name)
    if target.kind != "neuron":
        choices = ", ".join(target_names("neuron"))
        raise UnknownTarget(f"NKI kernels do not run on {target.title}; choose one of: {choices}")
    data = target.data

    def value(group: str, key: str) -> Any:
        return data[group][key]["value"]

    limits = Limits(
        **{k: value("limits", k) for k in (
            "partitions", "sbuf_bytes", "psum_bytes", "psum_bank_bytes", "stationary_columns", "moving_columns",
        )}
    )  # fmt: skip
    return Hardware(
        name=data["name"], title=data["title"], generation=data["generation"], limits=limits,
        sbuf_usable=value("limits", "sbuf_usable_bytes"),
        clocks={engine: entry["value"] for engine, entry in data["clock_ghz"].items()},
        hbm_gbps=value("peaks", "hbm_gbps"), fp32_tflops=value("peaks", "matmul_fp32_tflops"),
        bf16_tflops=value("peaks", "matmul_bf16_tflops"), dma_queues=value("dma", "queues"),
        dma_gbps=value("dma", "gbps"),
        descriptor_ns=value("dma", "descriptor_ns"), dma_latency_ns=value("dma", "latency_ns"),
        dma_element_ns=value("dma", "element_ns"), min_cycles=value("cost", "min_cycles"),
        access_cycles=value("cost", "access_cycles"), semaphore_ns=value("cost", "semaphore_ns"),
        gpsimd_overhead=value("cost", "gpsimd_overhead_cycles"),
        reciprocal_cycles=value("cost", "reciprocal_cycles_per_element"), fp32_passes=value("cost", "fp32_passes"),
        fp32_onezero_passes=value("cost", "fp32_onezero_passes"), reuses_loads=value("compiler", "reuses_loads"),
        spills=value("compiler", "spills"), scale=value("interval", "scale"), low=value("interval", "low"),
        high=value("interval", "high"),
    )  # fmt: skip
