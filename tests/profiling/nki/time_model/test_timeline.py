"""A schedule as a timeline: every piece of work once, in order, on its lane, and the shares that a picture shows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from support.nki_source import FIRST_LINE, run

from accelopt_profiling.nki.time_model import timeline as making
from accelopt_profiling.nki.time_model.hardware import hardware
from accelopt_profiling.nki.time_model.schedule import Schedule, prepare, schedule
from accelopt_profiling.nki.time_model.timeline import timeline
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.timeline import Timeline

TRN1 = hardware("trn1")
BODY = """
out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
for i in nl.affine_range(32):
    x = nl.load(a[i * 128:i * 128 + 128, 0:512])
    nl.store(out[i * 128:i * 128 + 128, 0:512], nl.multiply(nl.exp(x), x))
return out
"""
LOAD, WORK = FIRST_LINE + 2, FIRST_LINE + 3


@pytest.fixture(scope="module")
def plan() -> Schedule:
    x = np.broadcast_to(np.zeros((), np.float32), (4096, 512))
    return schedule(prepare(run(BODY, x, mode="trace").trace.instructions, TRN1), TRN1)


def test_each_step_is_there_once_and_no_lane_does_two_things_at_once(plan: Schedule) -> None:
    result = timeline(plan)
    spans = result.spans
    assert result.lanes == ["VectorE", "ScalarE", "DMA"]
    assert len(spans.lane) == len(plan.residency.order) == 32 * 4
    assert spans.start_us == sorted(spans.start_us)
    assert result.shown_us == result.us == pytest.approx(plan.total / 1000)
    for lane in range(3):
        mine = [n for n, at in enumerate(spans.lane) if at == lane]
        ends = [spans.start_us[n] + spans.us[n] for n in mine]
        assert all(end <= spans.start_us[n] + 1e-3 for end, n in zip(ends, mine[1:], strict=False))
        assert sum(spans.us[n] for n in mine) == pytest.approx(plan.busy[result.lanes[lane]] / 1000, rel=0.01)


def test_a_span_names_what_it_waited_for(plan: Schedule) -> None:
    result = timeline(plan)
    spans = result.spans
    first = next(n for n, at in enumerate(spans.lane) if result.lanes[at] == "ScalarE")
    assert (spans.line[first], spans.why[first]) == (WORK, "operand")
    assert spans.line[spans.cause[first]] == LOAD


def test_the_shares_of_all_parts_make_up_the_work(plan: Schedule) -> None:
    result = timeline(plan)
    for engine, shares in zip(result.lanes, result.busy, strict=True):
        assert all(0 <= share <= 1 for share in shares)
        done = sum(shares) / len(shares) * plan.total
        assert done == pytest.approx(plan.busy[engine], rel=0.02)


def test_a_very_long_run_is_shown_in_part(plan: Schedule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "MOST_SPANS", 40)
    result = timeline(plan)
    assert len(result.spans.lane) == 40
    assert result.shown_us < result.us
    assert all(cause < 40 for cause in result.spans.cause)


def test_a_timeline_travels_as_json(plan: Schedule) -> None:
    result = timeline(plan)
    plain: Any = json.loads(json.dumps(to_plain(result)))
    assert from_plain(Timeline, plain) == result


def test_nothing_has_an_empty_timeline() -> None:
    result = timeline(schedule(prepare([], TRN1), TRN1))
    assert (result.us, result.lanes, result.spans.lane) == (0.0, [], [])
