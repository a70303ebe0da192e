"""Two cores of a launch run side by side, share HBM's bandwidth, and wait for one another at a barrier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.nki_rule_cases import loaded

from accelopt_profiling.nki.data.instruction import COMPUTE_ENGINES, DMA, VECTOR, Trace
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.install import emulated
from accelopt_profiling.nki.time_model.estimate import critical_path, estimate, waits
from accelopt_profiling.nki.time_model.hardware import hardware
from accelopt_profiling.nki.time_model.timeline import timeline

TRN2 = hardware("trn2")
HEAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    cores = nl.num_programs(0) if nl.program_ndim() else 1
    me = nl.program_id(0) if nl.program_ndim() else 0
"""
#: Each core takes its share of the rows, ``works`` times each.
SPLIT = """
    for i in range({tiles} // cores):
        rows = (me * ({tiles} // cores) + i) * 128
        t = nl.ndarray((128, 2048), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(t, x[rows:rows + 128, :])
        for _ in range({works}):
            nisa.tensor_tensor(t, t, t, nl.add)
        nisa.dma_copy(out[rows:rows + 128, :], t)
        {more}
    return out
"""
BARRIER = "nisa.core_barrier(out, (0, 1))"


def traced(body: str, cores: int, tiles: int = 16) -> Trace:
    x = np.broadcast_to(np.zeros((), np.float32), (tiles * 128, 2048))
    with emulated("trace", limits=TRN2.limits) as emulation:
        kernel = loaded(HEAD + body).kernel
        (kernel[cores] if cores > 1 else kernel)(x)
    return emulation.machines[0].trace


def split(cores: int, tiles: int = 16, works: int = 8, more: str = "pass") -> Trace:
    return traced(SPLIT.format(tiles=tiles, works=works, more=more), cores, tiles)


def us(trace: Trace) -> float:
    """Without what starting the launch takes."""
    return estimate(trace, TRN2).schedule.total / 1000


def test_work_that_is_split_takes_half_as_long() -> None:
    one, two = estimate(split(1), TRN2), estimate(split(2), TRN2)
    assert two.schedule.total == pytest.approx(one.schedule.total / 2, rel=0.1)
    assert two.schedule.cores == 2
    assert two.bound == one.bound == VECTOR
    assert two.percent_of_peak == pytest.approx(one.percent_of_peak, rel=0.15)
    assert all(share <= 1 for share in two.busy.values())


def test_transfers_of_both_share_the_bandwidth() -> None:
    """What moves bytes only gains what two cores have more than one, not twice."""
    one, two = split(1, tiles=64, works=0), split(2, tiles=64, works=0)
    assert estimate(one, TRN2).bound == "memory"
    assert 1.5 < us(one) / us(two) < 1.9, "pieces of a transfer cost each core what they cost one"
    enough = replace(TRN2, shared_gbps=2 * TRN2.dma_gbps)
    apart = estimate(two, enough).schedule
    assert apart.total < 0.95 * estimate(two, TRN2).schedule.total


UNEVEN = """
    t = nl.ndarray((128, 2048), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(t, x[me * 128:me * 128 + 128, :])
    for _ in range(40 if me == {slow} else 1):
        nisa.tensor_tensor(t, t, t, nl.add)
    {barrier}
    for _ in range(1 if me == {slow} else 40):
        nisa.tensor_tensor(t, t, t, nl.add)
    nisa.dma_copy(out[me * 128:me * 128 + 128, :], t)
    return out
"""


@pytest.mark.parametrize("slow", [0, 1])
def test_at_a_barrier_each_waits_for_the_other(slow: int) -> None:
    free = us(traced(UNEVEN.format(slow=slow, barrier="pass"), 2))
    met = estimate(traced(UNEVEN.format(slow=slow, barrier=BARRIER), 2), TRN2)
    assert met.schedule.total / 1000 > 1.7 * free, "the quick one does its forty steps after the slow one's"
    path = critical_path(met.schedule, dict.fromkeys((*COMPUTE_ENGINES, DMA), 0.0))
    assert sum(path.on.values()) == pytest.approx(met.schedule.total)
    assert path.on[VECTOR] > 0.8 * met.schedule.total
    assert sum(wait.ns for wait in waits(met.schedule, VECTOR)) > 0.2 * met.schedule.total, "the mean of both"


def test_barriers_in_a_loop_follow_the_iterations() -> None:
    """Many iterations with a barrier take as many times as long as a few."""
    few, many = us(split(2, tiles=16, works=2, more=BARRIER)), us(split(2, tiles=160, works=2, more=BARRIER))
    assert many == pytest.approx(10 * few, rel=0.15)
    assert few > 1.3 * us(split(2, tiles=16, works=2))


def test_each_core_has_its_own_memory() -> None:
    body = """
    held = []
    for i in range(20):
        t = nl.ndarray((128, 2048), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(t, x[0:128, :])
        held.append(t)
    {barrier}
    for t in held:
        nisa.dma_copy(out[me * 128:me * 128 + 128, :], t)
    return out
    """
    for barrier in ("pass", BARRIER):
        outcome = estimate(traced(body.format(barrier=barrier), 2), TRN2).schedule
        assert outcome.residency.peak[MemorySpace.SBUF] == 20 * 2048 * 4
        assert outcome.residency.saved_bytes == 0
    findings = []
    for size in (20, 40):
        x = np.broadcast_to(np.zeros((), np.float32), (16 * 128, 2048))
        with emulated("trace", limits=TRN2.limits) as emulation:
            loaded(HEAD + body.replace("range(20)", f"range({size})").format(barrier=BARRIER)).kernel[2](x)
        findings.append([f.code for f in emulation.machines[0].findings])
    assert "capacity" not in findings[0]
    assert "capacity" in findings[1]


def test_the_timeline_has_lanes_of_both() -> None:
    result = timeline(estimate(split(2, tiles=4), TRN2).schedule)
    assert result.lanes == [VECTOR, DMA, f"{VECTOR} 1", f"{DMA} 1"]
    assert set(result.spans.lane) == {0, 1, 2, 3}
