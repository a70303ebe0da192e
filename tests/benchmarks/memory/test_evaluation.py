"""The simulated search tries what its priority says, and knows other kernels only."""

from __future__ import annotations

from random import Random
from typing import cast

from accelopt_agent.candidate import Candidate
from accelopt_benchmarks.memory.evaluation import (
    MOST,
    RecordedKernel,
    RecordedRewrite,
    by_catalogue,
    by_lot,
    by_prior,
    compare,
    evaluation_rows,
    interval,
    learning_curve,
    record_carried,
    searched,
)
from accelopt_benchmarks.search.world import World
from accelopt_memory.features import kernel_features
from accelopt_memory.outcomes import OutcomePrior
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement, Latency
from accelopt_profiling.quantity import Known

SOURCE = """\
import triton
import triton.language as tl


@triton.jit
def kernel_{name}(x, y, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(y + at, tl.load(x + at) * {name}.0)
"""
#: What each rule makes of the time: one helps, in the catalogue's order the last.
RULES = {"rule:idle": 1.0, "rule:slow": 1.5, "rule:breaks": None, "rule:good": 0.5}


def recorded(number: int) -> RecordedKernel:
    text = SOURCE.format(name=number)
    kernel = find_kernels(text).kernels[0]
    rewrites = [
        RecordedRewrite(text, f"{text}# {rule}\n", rule, 100.0 * ratio if ratio else None)
        for rule, ratio in RULES.items()
    ]
    times = {text: 100.0} | {r.after: r.us for r in rewrites if r.us}
    measured = {
        version: KernelMeasurement(
            kernel.name, 6, "triton", "h100", latency=Latency(us, us, us, Known.ESTIMATED), bound="memory"
        )
        for version, us in times.items()
    }
    record = RecordedKernel(
        f"k{number}", kernel.name, "triton", "h100", text, 100.0, 50.0, kernel.content_hash,
        kernel_features(text, kernel.name, "memory"), {text: rewrites}, measured,
    )  # fmt: skip
    record.note_outcomes()
    return record


def test_each_order_needs_what_it_should() -> None:
    one, other = recorded(1), recorded(2)
    assert searched(one, by_catalogue)[0] == 4
    assert searched(one, by_prior(one, OutcomePrior(other.outcomes))) == (2, 1.0), (
        "the first try is the catalogue's"
    )
    assert 1 <= searched(one, by_lot(Random(1)))[0] <= 4
    assert searched(one, by_catalogue, lambda item: item != "rule:good") == (MOST, 2.0)


def test_what_is_told_helps_and_kernels_count_alike() -> None:
    kernels = [recorded(k) for k in range(3)]
    runs = compare(kernels, 5)
    assert {run.kernel for run in runs} == {"k0", "k1", "k2"}
    ratio, low, high, _ = interval(runs, "learned", "catalogue", lambda run: float(run.candidates))
    assert ratio == low == high == 0.5
    bounds = interval(runs, "told ours", "told none", lambda run: float(run.candidates))
    assert bounds[0] < 1.0
    curve = learning_curve(kernels, 5)
    assert curve[2] < curve[0]
    assert len(evaluation_rows(runs, curve)) == 10


class WorldOfOneEdit:
    """A world in which a load that is evicted first halves the time, and the catalogue knows no rewrite."""

    async def cost(self, text: str, kernel: str) -> KernelMeasurement:
        us = 50.0 if "evict_first" in text else 100.0
        return KernelMeasurement(kernel, 6, "triton", "h100", latency=Latency(us, us, us, Known.ESTIMATED))

    def rewrites(self, text: str) -> list[Candidate]:
        return []


async def test_what_an_edit_of_another_kernel_makes_has_its_real_cost() -> None:
    one, other = recorded(1), recorded(2)
    faster = other.text.replace("x + at)", 'x + at, eviction_policy="evict_first")')
    other.rewrites[other.text] = [RecordedRewrite(other.text, faster, "rule:good", 50.0)]
    other.measured[faster] = await WorldOfOneEdit().cost(faster, other.kernel)
    await record_carried(one, cast(World, WorldOfOneEdit()), [one, other])
    (edit,) = (r for r in one.carried.values() if r.before == one.text)
    assert (edit.us, edit.after) == (
        50.0,
        one.text.replace("x + at)", 'x + at, eviction_policy="evict_first")'),
    )
    allowed = "rule:idle".__eq__
    assert searched(one, by_catalogue, allowed)[0] == MOST
    assert searched(one, by_prior(one, OutcomePrior([]), {edit: 0.5}), allowed, [edit])[0] <= 2
