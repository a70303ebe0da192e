"""Ranks tile sizes of a matrix product for a target by a simple count: waves of programs, and per program the larger of
tensor-core time and L2 time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from accelopt_agent.rules.analysis.rule_context import RuleContext
from accelopt_profiling.targets import GpuTarget, UnknownTargetError, load_gpu


@dataclass(frozen=True)
class ProductSchedule:
    """Tile sizes of one program and the launch options that go with them."""

    rows: int
    columns: int
    inner: int
    warps: int
    stages: int


@dataclass(frozen=True)
class PresentProduct:
    """What is known of the product as it is: tile sizes, programs of its launch (None where not measured) and bytes per
    element of its operands."""

    rows: int
    columns: int
    inner: int
    programs: float | None
    element_bytes: int

    @property
    def outputs(self) -> float | None:
        return None if self.programs is None else self.programs * self.rows * self.columns


def present_product(subject: RuleContext, rows: int, columns: int, inner: int) -> PresentProduct:
    """Return the bytes of an element follow from the traffic of tiles: rows and columns are loaded once per
    step of inner."""
    quantities = subject.measurement.quantities if subject.measurement is not None else {}
    value = {name: q.value for name, q in quantities.items() if q.value}
    programs, loads, flops = value.get("programs"), value.get("load_bytes"), value.get("mma_flops")
    exact = 2.0
    if loads and flops:
        exact = loads / flops * 2 * rows * columns / (rows + columns)
    element = min((1, 2, 4), key=lambda n: abs(math.log2(max(exact, 0.1) / n)))
    return PresentProduct(rows, columns, inner, programs, element)


#: Accumulators of more 32-bit registers than this per thread leave too few for operands and addresses.
_MOST_ACCUMULATORS = 128
_SIDES = (16, 32, 64, 128, 256)
#: Narrower tiles than this serve a narrow output only.
_NARROW = 32
#: A step along the inner dimension reads this many bytes of each row: a whole cache line.
_LINE = 128
#: The share of the present cost below which another tile is worth a try.
_WORTHWHILE = 0.95
#: Output elements that are assumed where the launch was not measured.
_OUTPUTS = 4096 * 4096


def schedules(subject: RuleContext, present: PresentProduct) -> list[ProductSchedule]:
    """Return tile schedules that fit the target and promise more than the present tile, the most promising first."""
    try:
        target = load_gpu(subject.target or "h100")
    except UnknownTargetError:
        return []
    fitting = sorted(_fitting(target, present), key=lambda s: _cost(target, present, s))
    now = _cost(target, present, ProductSchedule(present.rows, present.columns, present.inner, 4, 3))[0]
    best: dict[tuple[int, int], ProductSchedule] = {}
    for schedule in fitting:
        if _cost(target, present, schedule)[0] < now * _WORTHWHILE:
            best.setdefault((schedule.rows, schedule.columns), schedule)
    return list(best.values())


def _fitting(target: GpuTarget, present: PresentProduct) -> Iterator[ProductSchedule]:
    capacity = int(target["shared_memory_per_program"])
    least = max(16, _LINE // present.element_bytes // 2)
    for inner in (least, 2 * least):
        for rows in (side for side in _SIDES if side >= min(_NARROW, present.rows)):
            for columns in (side for side in _SIDES if side >= min(_NARROW, present.columns)):
                warps = 8 if rows * columns >= 128 * 128 else 4
                if rows * columns / (warps * 32) > _MOST_ACCUMULATORS or max(rows, columns) > 8 * min(
                    rows, columns
                ):
                    continue
                stage = (rows + columns) * inner * present.element_bytes
                stages = min(4, capacity // stage)
                if stages >= 2:
                    yield ProductSchedule(rows, columns, inner, warps, stages)


def _cost(target: GpuTarget, present: PresentProduct, schedule: ProductSchedule) -> tuple[float, float]:
    """Relative time of the whole product, per step of one element along the inner dimension."""
    units = target["multiprocessors"]
    name = {4: "peak.tf32", 2: "peak.fp16", 1: "peak.int8"}[present.element_bytes]
    flops = (
        target.get(name, target.get("peak.fp16", 1e14)) * target.get("model.tensor_efficiency", 0.8) / units
    )
    traffic = target["l2_bandwidth"] / units
    area, edge = schedule.rows * schedule.columns, schedule.rows + schedule.columns
    # Narrow instructions do not fill the tensor cores, and short steps wait at barriers more often.
    filled = min(1.0, schedule.rows / 64) * min(1.0, schedule.columns / 64)
    once = max(2 * area / (flops * filled), edge * present.element_bytes / traffic) * (1 + 4 / schedule.inner)
    programs = (present.outputs or _OUTPUTS) / area
    resident = max(1.0, min(2.0, 64 * 1024 / (area * 4)))
    waves = math.ceil(programs / units / resident) * resident if programs > units else 1.0
    return once * waves, -schedule.inner
