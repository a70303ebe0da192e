"""``accelopt bench device`` without a device: its parts on stand-ins, its programs' texts, its page, and what it says
where there is no GPU.
"""

import asyncio
import contextlib
import json
import sys
import time
from dataclasses import replace

import pytest

from accelopt_lsp.bench.device import (
    asked_file,
    estimates,
    facts,
    flashinfer_evaluator,
    ncu,
    others,
    run_once,
)
from accelopt_lsp.bench.device import timing as timing_part
from accelopt_lsp.bench.device import tricks as tricks_part
from accelopt_lsp.bench.device.found import Found, Table, attempt
from accelopt_lsp.bench.device.kernelbench_evaluator import texts
from accelopt_lsp.bench.device.measuring import PARTS, read_found
from accelopt_lsp.bench.device.page import page
from accelopt_lsp.bench.device.place import Place
from accelopt_lsp.bench.device.subjects import Subject, kernels, tricks
from accelopt_lsp.bench.row import Row, not_measured
from accelopt_lsp.cli import bench_device
from accelopt_profiling.hosts.host import HostFacts, JobFailed, Progress
from accelopt_profiling.jobs import StepError
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import Latency
from accelopt_profiling.plain import to_plain
from accelopt_profiling.quantity import Known
from accelopt_profiling.timing import checking, step
from accelopt_profiling.timing.checking import CheckedRuns
from accelopt_profiling.timing.names import DeviceKernel
from accelopt_profiling.timing.running import Plan
from accelopt_profiling.timing.session import Session, time_calls
from accelopt_profiling.worker.sources import write_sources
from accelopt_profiling.worker.step import StepContext, StepFailed
from accelopt_profiling.worker.steps import find_step


def session(us, wrong="", notes=()):
    time_ = Latency(us, us, us, Known.MEASURED)
    return Session("d", {}, time_, time_, 20, 16, notes=list(notes), checked=CheckedRuns(4, wrong))


def test_the_corpus_is_complete():
    assert {"scale", "tiny", "product", "triton_add", "triton_softmax"} <= {s.name for s in kernels()}
    for subject in kernels():
        assert [k for k in find_kernels(subject.text()).kernels if not k.device_function], subject.name
        assert subject.asked()[2].kind == "module"
    found = tricks()
    assert len(found) == 8
    for trick in found:
        assert trick.tricks
        for one in (trick.attack, trick.honest):
            assert asked_file.entry_of(one.text(), 1) == "scale"
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
    assert tricks_part.judge_honest(honest).caught == fine


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
    with pytest.raises(ncu.NoNcu, match=r"exit 1.*no permission"):
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


class Tensor:
    def __init__(self, *shape):
        self.shape, self.dtype = shape, "torch.float16"


def test_texts_for_other_evaluators():
    kernel = "def _own(x): pass\n\ndef run(x, y):\n    return x + y\n"
    asked = asked_file.AskedFile(
        kernel, "def reference(x, y):\n    return x + y\n", "run", [Tensor(4, 8), Tensor(8)], Tensor(4, 8)
    )
    assert asked_file.entry_of(kernel, 2) == "run"
    with pytest.raises(ValueError, match="takes 3 inputs"):
        asked_file.entry_of(kernel, 3)
    for text in texts(asked):
        compile(text, "text", "exec")
    assert "class ModelNew" in texts(asked)[1]
    files = flashinfer_evaluator.data_set(asked)
    definition = json.loads(files["definitions/asked/asked.json"])
    assert definition["inputs"]["x0"] == {"shape": ["n4", "n8"], "dtype": "float16"}
    assert set(definition["axes"]) == {"n4", "n8"}
    compile(definition["reference"], "reference", "exec")
    assert json.loads(files["solutions/asked/candidate.json"])["spec"]["entry_point"] == "candidate.py::run"


async def test_evaluators_side_by_side(monkeypatch):
    async def ours(subject):
        return others.Judgement("attack" not in subject.name, 10.0, 1.0, "wrong")

    async def theirs(subject):
        if subject.name == "tiny":
            raise ValueError("no memory")
        return others.Judgement(True, 1.0 if "attack" in subject.name else 10.0, 2.0)

    lacks = []
    found = await others.compared(place(None), {"AccelOpt LSP": ours, "Theirs": theirs}, lacks)
    assert [(row.value, row.met) for row in found.rows] == [(100.0, True), (0.0, None)]
    assert lacks == ["Theirs, tiny: ValueError: no memory"]
    assert found.tables[0].rows[0] == ["tiny", "10.0; 1.0 s", "-"]
    assert ["side_stream", "attack", "refused", "accepted, 1.0"] in found.tables[1].rows


def test_an_evaluators_program_that_fails_is_told():
    with pytest.raises(ValueError, match="it said nothing"):
        others._judged_by(["true"])
    told = others._judged_by(["echo", 'noise\nJUDGED {"accepted": true, "us": 2.5, "said": ""}'])
    assert (told.accepted, told.us) == (True, 2.5)


async def test_every_surprise_becomes_words():
    async def late():
        await asyncio.sleep(60)

    async def failing():
        raise JobFailed("time", StepError("user-error", "It raised.", "k.py", 3, "Traceback\nOSError: why"))

    assert await attempt(late(), 0.01) == "not done within 0 s"
    assert await attempt(failing(), 9) == "time failed (k.py, line 3): It raised.: OSError: why"


def test_the_page_names_the_device_and_what_was_lacking(tmp_path):
    rows = [Row("a | b", "1", 2.0, "ms", False, "how"), not_measured("c", "d", "no device")]
    old = Found("timing", lacks=["old"], when="2026-01-01 00:00 UTC")
    new = Found("timing", rows, [Table("T", ["x"], [["1"]]), Table("empty", ["x"])], ["no ncu"], "NVIDIA X",
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
    assert PARTS == bench_device.PARTS


# -- the parts themselves, on an emulated device ------------------------------------------------------------------


class WallDevice:
    """The device of the emulation: what runs on it runs in this process."""

    name, identifier = "NVIDIA H100 80GB HBM3", None

    def event(self):
        class Event:
            def record(self):
                self.at = time.perf_counter()

            def synchronize(self):
                pass

            def elapsed_time(self, end):
                return 1e3 * (end.at - self.at)

        return Event()

    def synchronize(self):
        pass

    def empty_caches(self):
        pass

    def capturing(self):
        return False


class InProcess:
    """A host that runs steps in this process, in the emulation's scope."""

    name, remote = "local", True

    def __init__(self, folder):
        self.folder, self.jobs = folder, 0

    async def facts(self):
        return HostFacts("local", devices=[{"name": WallDevice.name, "driver_version": "1"}])

    async def run(self, job):
        from accelopt_profiling.triton.session import emulated
        from accelopt_profiling.worker.usercode import enter_sources

        self.jobs += 1
        folder = self.folder / str(self.jobs)
        write_sources(folder / "src", job.source.files)
        context = StepContext(folder, job.source, lambda value: None)
        for one in job.steps:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("sys.path", [*sys.path])
                enter_sources(context)
                try:
                    if one.name == "profile":
                        value = find_step(one.name, one.params)(context)
                    else:
                        with emulated("h100", seconds=60):
                            value = find_step(one.name, one.params)(context)
                except StepFailed as failed:
                    raise JobFailed(one.name, failed.error) from None
            yield Progress(one.name, to_plain(value), True)

    async def close(self):
        pass


def place(host):
    listed = HostFacts("local", "3.11", devices=[{"name": WallDevice.name, "driver_version": "1"}])
    return Place(host, listed, time.monotonic() + 300, WallDevice.name, "h100", True)


@pytest.fixture
def emulated_place(tmp_path, monkeypatch):
    """A place whose device is the emulation, and a corpus of one short kernel."""
    import torch

    corpus = tmp_path / "corpus"
    corpus.mkdir()
    found = next(s for s in kernels() if s.name == "tiny")
    path, problem = corpus / "scale.py", corpus / "scale_problem.py"
    path.write_text(found.text())
    problem.write_text(found.problem.read_text().replace("1 << 12", "2048"))
    small = Subject("scale", path, problem)
    for module in (timing_part, estimates, tricks_part):
        monkeypatch.setattr(module, "kernels", lambda: [small])
    monkeypatch.setattr(timing_part, "SUBJECTS", ("scale",))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(step, "TorchDevice", lambda torch: WallDevice())
    monkeypatch.setattr(
        step, "traced", lambda torch, call: [DeviceKernel("scale_kernel", 30.0, 7)] if call() else None
    )
    monkeypatch.setattr(step, "_hooked", contextlib.nullcontext)
    short = Plan(2, 0.0, 4, 6, 6, 0.0)
    monkeypatch.setattr(step, "time_calls", lambda a, b, c, plan, *rest: time_calls(a, b, c, short, *rest))
    for module in (step, checking):
        monkeypatch.setattr(module, "on_device", lambda value: value)
    return place(InProcess(tmp_path))


@pytest.mark.slow
async def test_the_part_timing_on_an_emulated_device(emulated_place):
    found = await timing_part.timing(emulated_place)
    named = {row.what: row for row in found.rows}
    assert named["scale: outputs of timed runs right"].met
    assert named["A against A"].value is not None
    assert "within noise" in named["A against A"].goal
    assert len(found.tables[0].rows) == 1
    assert len(found.tables[0].rows[0]) == len(found.tables[0].header)
    assert [said for said in found.lacks if "do_bench" not in said] == []


@pytest.mark.slow
async def test_the_part_estimates_on_an_emulated_device(emulated_place):
    found = await estimates.estimates(emulated_place)
    assert found.lacks == []
    assert found.rows[0].met
    assert found.rows[1].value is not None, "the estimate was compared with a time"
    assert len(found.tables[0].rows[0]) == len(found.tables[0].header)


@pytest.mark.slow
async def test_the_part_tricks_on_an_emulated_device(emulated_place, tmp_path, monkeypatch):
    """Those that need neither streams nor graphs nor the driver, which an emulation lacks."""
    problem = emulated_place.host.folder / "corpus" / "scale_problem.py"
    plain = [t for t in tricks() if t.name in ("by_address", "one_in_fifteen", "lazy_output")]
    small = [
        replace(t, attack=replace(t.attack, problem=problem), honest=replace(t.honest, problem=problem))
        for t in plain
    ]
    monkeypatch.setattr(tricks_part, "tricks", lambda: small)
    found = await tricks_part.tricks_on_device(emulated_place)
    table = {row[0]: row for row in found.tables[0].rows}
    assert table["by_address"][4] == "yes", table["by_address"]
    assert table["by_address"][7] == "yes", table["by_address"]
    assert table["lazy_output"][4] == "yes", table["lazy_output"]


@pytest.mark.slow
async def test_without_a_device_every_part_says_what_it_lacks(tmp_path):
    from accelopt_lsp.bench.device.measuring import measure

    said = []
    found = await measure(["worker", "timing", "tricks", "evaluators"], tmp_path, 100, None, said.append)
    assert [one.part for one in found] == ["worker", "timing", "tricks", "evaluators"]
    for one in found:
        assert any(row.value is None for row in one.rows)
        assert any("cannot be opened" in text for text in one.lacks)
    assert read_found(tmp_path) == sorted(found, key=lambda one: PARTS.index(one.part))
