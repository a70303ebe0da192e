"""``accelopt bench device`` without a device: how tricks are judged, and the page."""

import asyncio
import json
from dataclasses import replace

import pytest

from accelopt_benchmarks.device import session as device_session
from accelopt_benchmarks.device import tricks as tricks_part
from accelopt_benchmarks.device.corpus import kernels, tricks
from accelopt_benchmarks.device.measuring import MEASURES, PARTS, page, read_found
from accelopt_benchmarks.device.part_result import PartResult, Table, attempt
from accelopt_benchmarks.result import GoalResult, not_measured
from accelopt_profiling.hosts.host import HostFacts, JobFailedError, JobMessage
from accelopt_profiling.jobs import StepError
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import Latency
from accelopt_profiling.plain import to_plain
from accelopt_profiling.quantity import Known
from accelopt_profiling.timing.check_step import CheckedRuns
from accelopt_profiling.timing.session import TimingSession
from accelopt_profiling.worker.isolation import Isolation


def session(us, wrong="", notes=()):
    time_ = Latency(us, us, us, Known.MEASURED)
    return TimingSession("d", {}, time_, time_, 20, 16, notes=list(notes), checked=CheckedRuns(4, wrong))


def test_the_corpus_is_complete():
    assert {"scale", "tiny", "product", "triton_add", "triton_softmax"} <= {s.name for s in kernels()}
    for subject in kernels():
        assert find_kernels(subject.text).launched, subject.name
        assert subject.profile_inputs()[2].kind == "module"
    corpus_tricks = tricks()
    assert len(corpus_tricks) == 8
    for trick in corpus_tricks:
        assert trick.tricks
        for one in (trick.attack, trick.honest):
            assert one.profile_inputs()[0].kernel in one.profile_inputs()[0].files


@pytest.mark.parametrize(
    ("attack", "honest", "caught"),
    [
        (session(10, wrong="Run 3 of the timing: ..."), session(100), True),
        (session(10), session(100), False),
        (session(95), session(100), True),
        (session(95), "failed", True),
        ("time failed: a kind of tensor of its own (Later)", session(100), True),
        ("time failed: something else", session(100), False),
    ],
)
def test_a_trick_is_caught_when_it_gets_nowhere(attack, honest, caught):
    assert tricks_part.judge_attack(attack, honest, session(100)).caught == caught


@pytest.mark.parametrize(
    ("honest", "fine"),
    [
        (session(1), True),
        (session(1, wrong="x"), False),
        ("failed", False),
        (replace(session(1), checked=None), False),
    ],
)
def test_a_twin_has_to_be_timed_and_right(honest, fine):
    assert (tricks_part.wrong_with(honest) == "") == fine


async def test_every_surprise_becomes_words():
    async def late():
        await asyncio.sleep(60)

    async def failing():
        raise JobFailedError(
            "time", StepError("user-error", "It raised.", "k.py", 3, "Traceback\nOSError: why")
        )

    assert await attempt(late(), 0.01) == "not done within 0 s"
    assert await attempt(failing(), 9) == "time failed (k.py, line 3): It raised.: OSError: why"


def test_the_page_names_the_device_and_what_was_lacking(tmp_path):
    rows = [GoalResult("a | b", "1", 2.0, "ms", False, "how"), not_measured("c", "d", "no device")]
    old = PartResult("timing", lacks=["old"], when="2026-01-01 00:00 UTC")
    new = PartResult("timing", rows, [Table("T", ["x"], [["1"]]), Table("empty", ["x"])], ["no tracer"], "NVIDIA X",
                {"torch": "2"}, "2026-01-02 00:00 UTC", 3.0)  # fmt: skip
    for name, one in (("a", new), ("b", old)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "timing.json").write_text(json.dumps(to_plain(one)))
    assert read_found(tmp_path) == [new]
    text = page([new])
    assert text.startswith("# Measured on NVIDIA X\n")
    assert "| a \\| b | 1 | 2 ms | missed | how |" in text
    assert "| c | d | not measured |  | no device |" in text
    assert "- no tracer" in text
    assert "empty" not in text
    assert tuple(MEASURES) == PARTS


@pytest.mark.parametrize(
    ("opens", "closed", "usable"), [("namespaces", 0, True), ("none", 1, True), ("never", 1, False)]
)
async def test_where_namespaces_keep_the_device_away_one_worker_goes_and_another_comes(
    monkeypatch, opens, closed, usable
):
    hosts = []

    class Worker:
        def __init__(self, environment=None):
            self.isolated, self.closed = environment is None, False
            hosts.append(self)

        async def facts(self):
            isolation = Isolation(processes=self.isolated)
            return HostFacts("local", devices=[{"name": "NVIDIA H100"}], isolation=isolation)

        async def run(self, job):
            if opens == "never" or (opens == "none" and self.isolated):
                raise JobFailedError("load", StepError("user-error", "no device file"))
            yield JobMessage("load", {"names": []}, True)

        async def close(self):
            self.closed = True

    monkeypatch.setattr(device_session, "LocalHost", Worker)
    opened = await device_session.open_session(60)
    assert [host.closed for host in hosts] == [True] * closed + [False]
    assert (opened.host, opened.usable, opened.target) == (hosts[-1], usable, "h100")
    assert ["in a cell" in line for line in opened.trouble] == [True] * closed + [False] * (not usable)
