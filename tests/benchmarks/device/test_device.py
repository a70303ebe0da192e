"""``accelopt bench device`` without a device: how tricks are judged, what other programs say, and the page."""

import asyncio
import json
from dataclasses import replace

import pytest

from accelopt_benchmarks.device import (
    facts,
    ncu,
    run_once,
)
from accelopt_benchmarks.device import session as device_session
from accelopt_benchmarks.device import tricks as tricks_part
from accelopt_benchmarks.device.corpus import kernels, tricks
from accelopt_benchmarks.device.measuring import MEASURES, PARTS, page, read_found
from accelopt_benchmarks.device.part_result import PartResult, Table, attempt
from accelopt_benchmarks.device.programs import entry_of
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
        assert [k for k in find_kernels(subject.text).kernels if not k.device_function], subject.name
        assert subject.asked()[2].kind == "module"
    found = tricks()
    assert len(found) == 8
    for trick in found:
        assert trick.tricks
        for one in (trick.attack, trick.honest):
            assert entry_of(one.text, 1) == "scale"
            assert one.asked()[0].kernel in one.asked()[0].files


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


NCU = """==PROF== Connected to process 7
"ID","Process ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum","launch__registers_per_thread"
"","","","byte","byte","register/thread"
"0","7","scale_kernel","1,000","24","18"
"1","7","other","n/a","3","9"
FACTS {}
"""


def test_ncus_table_is_read():
    first, second = ncu.parse(NCU)
    assert (first.kernel, first.dram_bytes, first.values["registers"]) == ("scale_kernel", 1024.0, 18.0)
    assert (second.dram_bytes, second.values) == (None, {"written": 3.0, "registers": 9.0})
    assert ncu.parse("nothing of the kind\n") == []


def test_a_program_in_the_place_of_ncu(tmp_path, monkeypatch):
    program = tmp_path / "ncu"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{NCU}END\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert len(ncu.count(["scale_kernel"], ["true"], {})) == 2
    program.write_text("#!/bin/sh\necho '==ERROR== no permission' >&2\nexit 1\n")
    with pytest.raises(ncu.NcuMissingError, match=r"exit 1.*no permission"):
        ncu.count(["scale_kernel"], ["true"], {})


class _Compiled:
    n_regs, n_spills = 18, 0

    class metadata:
        shared = 64


@pytest.mark.parametrize("caches", [{0: ({"key": _Compiled()}, {}, None)}, {0: {"key": _Compiled()}}])
def test_what_the_driver_said_is_found_in_tritons_caches(caches):
    class Function:
        device_caches = caches

    class Autotuner:
        fn = Function()

    class Module:
        pass

    module = Module()
    module.scale_kernel, module.tuned, module.other = Function(), Autotuner(), 3
    told = {"registers": 18, "spills": 0, "shared": 64}
    assert run_once.compiled_kernels(module) == {"scale_kernel": told, "tuned": told}


def test_a_row_of_facts_holds_what_is_known_and_no_more():
    kernel = estimates_kernel()
    launch = ncu.Counted("k", {"read": 512.0, "written": 512.0, "registers": 18.0})
    assert facts.row("f", kernel, {"registers": 18}, launch)[:4] == ["f", "18", "18", "18"]
    assert facts.row("f", kernel, {}, None)[1:4] == ["18", "-", "-"]


def estimates_kernel():
    from accelopt_profiling.measurement import KernelMeasurement
    from accelopt_profiling.quantity import compiled

    return KernelMeasurement("k", 1, "triton", "h100", quantities={"registers": compiled(18, "per thread")})


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
    new = PartResult("timing", rows, [Table("T", ["x"], [["1"]]), Table("empty", ["x"])], ["no ncu"], "NVIDIA X",
                {"torch": "2"}, "2026-01-02 00:00 UTC", 3.0)  # fmt: skip
    for name, one in (("a", new), ("b", old)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "timing.json").write_text(json.dumps(to_plain(one)))
    assert read_found(tmp_path) == [new]
    text = page([new])
    assert text.startswith("# Measured on NVIDIA X\n")
    assert "| a \\| b | 1 | 2 ms | missed | how |" in text
    assert "| c | d | not measured |  | no device |" in text
    assert "- no ncu" in text
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
    found = await device_session.open_session(60)
    assert [host.closed for host in hosts] == [True] * closed + [False]
    assert (found.host, found.usable, found.target) == (hosts[-1], usable, "h100")
    assert ["in a cell" in said for said in found.trouble] == [True] * closed + [False] * (not usable)
