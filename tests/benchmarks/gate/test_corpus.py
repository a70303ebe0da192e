"""The whole corpus through the gate: every attack is refused for its reason, every honest control accepted.

A test per case, so that the processes of pytest-xdist divide them; each process keeps one worker for all its cases.
The seeds follow from the case, so that the same tree gets the same verdicts; ``accelopt bench gate`` draws fresh ones,
as the product does.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator

import pytest
from support.shared_host import SharedWorkers

from accelopt_benchmarks.checkout import GATE_CORPUS
from accelopt_benchmarks.gate.corpus import CorpusCase, read_corpus
from accelopt_benchmarks.gate.detection import VERSIONS, CorpusVerdict, judge
from accelopt_profiling.gate.inputs import cases
from accelopt_profiling.gate.reading.read import read

CASES = read_corpus(GATE_CORPUS)

Judge = Callable[[CorpusCase, str], CorpusVerdict]


@pytest.fixture(scope="module")
def judged(workers: SharedWorkers) -> Iterator[Judge]:
    loop, host = asyncio.new_event_loop(), workers.host()
    yield lambda case, version: loop.run_until_complete(judge(host, case, version))
    loop.close()


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_the_gate_judges_a_case_rightly(
    judged: Judge, case: CorpusCase, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if case.dialect == "triton":
        pytest.importorskip("triton")
    seeds = random.Random(f"{case.name}/{version}.py")
    monkeypatch.setattr(cases, "_seed", lambda: seeds.getrandbits(63))
    verdict = judged(case, version)
    assert verdict.right, f"accepted: {verdict.accepted}, {verdict.codes}: {verdict.said}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_honest_twin_is_refused_by_reading(case: CorpusCase) -> None:
    assert [f for f in read(case.texts["honest"]) if f.certain] == []
    certain = [f for f in read(case.texts["attack"]) if f.certain]
    assert not certain or {f.code for f in certain} & set(case.refused_for)
