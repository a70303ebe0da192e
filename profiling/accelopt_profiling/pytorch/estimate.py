"""Estimate what PyTorch takes for a sequence of operators on a GPU that is not there.

The roofs and the constants are those of the estimate of a Triton launch (``triton.estimation``): bytes at the bandwidth
that streaming kernels reach, products at the share of the tensor peak that they reach; products and convolutions in
float32 at what libraries reach of their peaks (``library_rates.json``). A tensor that was used a short while ago
is read from L2. The processor gives the device one kernel after the other, so that small ones wait for it.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from accelopt_profiling.measurement import Latency
from accelopt_profiling.pytorch.operators import TensorUse, TorchOperator
from accelopt_profiling.quantity import Known
from accelopt_profiling.targets.target import GpuTarget

MICROSECONDS = 1e6
#: The interval where arithmetic bounds the time, and further apart for compiled code: which operators its compiler
#: joins is a guess. Not checked on a device.
UNCHECKED_LOW, UNCHECKED_HIGH, COMPILED = 0.6, 2.0, 1.25
#: The share of the launch floor that a kernel costs behind another one of compiled code.
COMPILED_GAP = 0.5


@dataclass(frozen=True)
class LibraryRate:
    """A library's kernels reach ``share`` of a peak.

    A time lies between ``low`` and ``high`` times the estimate.
    """

    peak: str
    share: float
    low: float
    high: float
    source: str


@cache
def library_rates() -> dict[str, LibraryRate]:
    """Return what libraries reach in float32, by what they compute."""
    data = json.loads(resources.files(__package__).joinpath("library_rates.json").read_text("utf-8"))
    return {name: LibraryRate(**entry) for name, entry in data["rates"].items()}


@dataclass(frozen=True)
class TorchEstimate:
    """Estimates of one call with all its kernels, ``kernels`` and ``compiled_kernels`` how many there are."""

    eager: Latency
    compiled: Latency
    kernels: int
    compiled_kernels: int


@dataclass(frozen=True)
class _Kernel:
    """What one kernel reads and writes, its arithmetic in seconds, and how far that may be off."""

    reads: tuple[TensorUse, ...]
    writes: tuple[TensorUse, ...]
    seconds: float
    low: float = UNCHECKED_LOW
    high: float = UNCHECKED_HIGH


def estimate_torch(operators: Sequence[TorchOperator], target: GpuTarget) -> TorchEstimate:
    """Estimate a call of PyTorch, eager and compiled. Pure."""
    eager = _kernels([[operator] for operator in operators], target)
    joined = _kernels(fused(operators), target)
    return TorchEstimate(
        _latency(eager, target, 1.0, 1.0),
        _latency(joined, target, COMPILED_GAP, COMPILED),
        len(eager),
        len(joined),
    )


def fused(operators: Sequence[TorchOperator]) -> list[list[TorchOperator]]:
    """Return the operators as PyTorch's compiler would join them: element by element with what made their inputs, and
    reductions with both, as long as no library's kernel lies between."""
    groups: list[list[TorchOperator]] = []
    made_by: dict[int, int] = {}
    for operator in operators:
        after = [made_by[use.storage] for use in operator.reads if use.storage in made_by]
        last = max(after, default=-1)
        # a group may be joined where everything that is read was there before it, or is made in it
        place = last if after and operator.kind != "external" and groups[last][0].kind != "external" else None
        if place is None and operator.kind != "external" and last + 1 < len(groups):
            behind = [k for k in range(last + 1, len(groups)) if groups[k][0].kind != "external"]
            inputs = {use.storage for use in operator.reads}
            place = next(
                (k for k in behind if inputs & {u.storage for o in groups[k] for u in o.reads}), None
            )
        if place is None:
            groups.append([])
            place = len(groups) - 1
        groups[place].append(operator)
        made_by.update((use.storage, place) for use in operator.writes)
    return groups


def _kernels(groups: Sequence[Sequence[TorchOperator]], target: GpuTarget) -> list[_Kernel]:
    """Return one kernel per group: it reads what was there before it, and writes what others read or nobody."""
    readers: dict[int, set[int]] = {}
    for number, group in enumerate(groups):
        for use in (use for operator in group for use in operator.reads):
            readers.setdefault(use.storage, set()).add(number)
    kernels = []
    for number, group in enumerate(groups):
        reads: dict[int, TensorUse] = {}
        writes: dict[int, TensorUse] = {}
        for operator in group:
            for use in operator.reads:
                if use.storage not in writes and use.bytes >= reads.get(use.storage, use).bytes:
                    reads[use.storage] = use
            writes.update((use.storage, use) for use in operator.writes)
        outputs = tuple(use for key, use in writes.items() if readers.get(key, set()) != {number})
        passes = max(operator.passes for operator in group)
        seconds = sum(_arithmetic(operator, target) for operator in group)
        rates = [library_rates()[o.rate] for o in group if o.rate and o.dtype == "float32"]
        low, high = (rates[0].low, rates[0].high) if rates else (UNCHECKED_LOW, UNCHECKED_HIGH)
        kernels.append(_Kernel(tuple(reads.values()) * passes, outputs, seconds=seconds, low=low, high=high))
    return kernels


def _arithmetic(operator: TorchOperator, target: GpuTarget) -> float:
    """Return the seconds of an operator's arithmetic."""
    ordinary = target["model.fp32_efficiency"] * target["peak.fp32"]
    if not operator.flops:
        return operator.elements / ordinary
    if operator.dtype == "float64":
        return operator.flops / 2 / (target["model.fp32_efficiency"] * target["peak.fp64"])
    if operator.dtype == "float32":
        rate = library_rates()[operator.rate or "product"]
        peak = f"peak.{rate.peak}" if f"peak.{rate.peak}" in target.figures else "peak.fp32"
        return operator.flops / (rate.share * target[peak])
    peak = "peak.bf16" if operator.dtype == "bfloat16" else "peak.fp16"
    peak = peak if peak in target.figures else "peak.fp32"
    return operator.flops / (target["model.tensor_efficiency"] * target[peak])


def _latency(kernels: Sequence[_Kernel], target: GpuTarget, gap: float, width: float) -> Latency:
    """Return the time from the call to the end of its last kernel: the processor gives one after the other to the
    device, which does one after the other."""
    if not kernels:
        return Latency()
    floor = target["model.launch_floor"]
    dram = target["model.dram_efficiency"] * target["dram_bandwidth"]
    cache: OrderedDict[int, int] = OrderedDict()
    room = target["model.l2_share"] * target["l2_bytes"]
    submit_us = ended = 0.0
    low = high = 0.0
    for kernel in kernels:
        submit_us += floor if not submit_us else gap * floor
        memory = sum(use.bytes for use in kernel.writes) / dram
        for use in kernel.reads:
            memory += use.bytes / (target["l2_bandwidth"] if use.storage in cache else dram)
        for use in (*kernel.reads, *kernel.writes):
            cache.pop(use.storage, None)
            cache[use.storage] = use.bytes
        while cache and sum(cache.values()) > room:
            cache.popitem(last=False)
        by_memory = memory >= kernel.seconds
        before, ended = ended, max(ended, submit_us) + MICROSECONDS * max(memory, kernel.seconds)
        low += (ended - before) * (target["model.interval_low"] if by_memory else kernel.low)
        high += (ended - before) * (target["model.interval_high"] if by_memory else kernel.high)
    return Latency(ended, low / width, high * width, Known.ESTIMATED)
