"""The whole corpus through the gate: every attack is refused for its reason, every honest control accepted.

Attacks that the gate is known to accept state no reason: they count in ``accelopt bench gate``.

A test per case, so that the processes of pytest-xdist divide them; each process keeps one worker for all its cases.
The seeds follow from the case, so that the same tree gets the same verdicts; ``accelopt bench gate`` draws fresh ones,
as the product does. A right verdict is stored, and stands until the case, the gate or a version changes; each reason
and each trick of each dialect is judged each time by one case, whose attack `make test` judges, and in CI all are.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Iterator

import pytest
from support.shared_host import SharedWorkers
from support.verdicts import judged_each_time, state_of_the_gate, verdict_key

from accelopt_benchmarks.checkout import GATE_CORPUS
from accelopt_benchmarks.gate.corpus import CorpusCase, read_corpus
from accelopt_benchmarks.gate.detection import CorpusVerdict, judge
from accelopt_profiling.gate import cases
from accelopt_profiling.gate.reading.read import read

CASES = read_corpus(GATE_CORPUS)
EACH_TIME = judged_each_time(CASES)

Judge = Callable[[CorpusCase, str], CorpusVerdict]


@pytest.fixture(scope="module")
def judged(workers: SharedWorkers) -> Iterator[Judge]:
    loop, host = asyncio.new_event_loop(), workers.host()
    yield lambda case, version: loop.run_until_complete(judge(host, case, version))
    loop.close()


@pytest.fixture(scope="module")
def gate() -> str:
    return state_of_the_gate()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "version"),
    [
        pytest.param(
            case,
            version,
            id=f"{case.name}-{version}",
            marks=[] if version == "attack" and case.name in EACH_TIME else pytest.mark.long,
        )
        for case in CASES
        for version in case.texts
        if version == "honest" or case.refused_for
    ],
)
def test_the_gate_judges_a_case_rightly(
    judged: Judge,
    gate: str,
    case: CorpusCase,
    version: str,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    stored = f"verdicts/{verdict_key(gate, case, version)}"
    cache: pytest.Cache = request.config.cache  # type: ignore[assignment]
    if case.name not in EACH_TIME and not os.environ.get("CI") and cache.get(stored, False):
        return
    if case.dialect == "triton":
        pytest.importorskip("triton")
    seeds = random.Random(f"{case.name}/{version}.py")
    monkeypatch.setattr(cases, "_seed", lambda: seeds.getrandbits(63))
    verdict = judged(case, version)
    assert verdict.right, f"accepted: {verdict.accepted}, {verdict.codes}: {verdict.said}"
    cache.set(stored, True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_honest_twin_is_refused_by_reading(case: CorpusCase) -> None:
    assert [f for f in read(case.texts.get("honest", ""), case.original) if f.certain] == []
    certain = [f for f in read(case.texts["attack"], case.original) if f.certain]
    assert not certain or {f.code for f in certain} & set(case.refused_for)
