"""The parts of ``accelopt bench device`` on an emulated device, and where there is none."""

import contextlib
from dataclasses import replace

import pytest
from support.emulated_device import InProcess, WallDevice, emulated_place

from accelopt_benchmarks.device import estimates
from accelopt_benchmarks.device import timing as timing_part
from accelopt_benchmarks.device import tricks as tricks_part
from accelopt_benchmarks.device.corpus import CorpusKernel, kernels, tricks
from accelopt_benchmarks.device.measuring import PARTS, measure, read_found
from accelopt_profiling.timing import check_step, time_step
from accelopt_profiling.timing.launches import DeviceKernel
from accelopt_profiling.timing.measure import TimingPlan
from accelopt_profiling.timing.session import time_calls


@pytest.fixture
def small_place(tmp_path, monkeypatch):
    """A place whose device is the emulation, and a corpus of one short kernel."""
    import torch

    corpus = tmp_path / "corpus"
    corpus.mkdir()
    tiny = next(s for s in kernels() if s.name == "tiny")
    path, problem = corpus / "scale.py", corpus / "scale_problem.py"
    path.write_text(tiny.text)
    problem.write_text(tiny.problem.read_text().replace("1 << 12", "2048"))
    small = CorpusKernel("scale", path, problem, tiny.text)
    for module in (timing_part, estimates, tricks_part):
        monkeypatch.setattr(module, "kernels", lambda: [small])
    monkeypatch.setattr(timing_part, "TIMED", ("scale",))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(time_step, "TorchDevice", lambda torch: WallDevice())
    monkeypatch.setattr(
        time_step, "traced", lambda torch, call: [DeviceKernel("scale_kernel", 30.0, 7)] if call() else None
    )
    monkeypatch.setattr(time_step, "_hooked", contextlib.nullcontext)
    short = TimingPlan(2, 0.0, 4, 6, 6, 0.0)
    monkeypatch.setattr(
        time_step, "time_calls", lambda *values, plan, **rest: time_calls(*values, plan=short, **rest)
    )
    for module in (time_step, check_step):
        monkeypatch.setattr(module, "on_device", lambda value: value)
    return emulated_place(InProcess(tmp_path))


@pytest.mark.slow
async def test_the_part_timing_on_an_emulated_device(small_place):
    part = await timing_part.timing(small_place)
    rows = {row.what: row for row in part.rows}
    assert rows["scale: outputs of timed runs right"].met
    assert rows["A against A"].value is not None
    assert "within noise" in rows["A against A"].goal
    assert len(part.tables[0].rows) == 1
    assert len(part.tables[0].rows[0]) == len(part.tables[0].header)
    assert [lack for lack in part.lacks if "do_bench" not in lack] == []


@pytest.mark.slow
async def test_the_part_estimates_on_an_emulated_device(small_place):
    part = await estimates.estimates(small_place)
    assert part.lacks == []
    assert part.rows[0].met
    assert part.rows[1].value is not None, "the estimate was compared with a time"
    assert len(part.tables[0].rows[0]) == len(part.tables[0].header)


@pytest.mark.slow
async def test_the_part_tricks_on_an_emulated_device(small_place, tmp_path, monkeypatch):
    """Those that need neither streams nor graphs nor the driver, which an emulation lacks."""
    problem = small_place.host.folder / "corpus" / "scale_problem.py"
    plain = [t for t in tricks() if t.name in ("by_address", "one_in_fifteen", "lazy_output")]
    small = [
        replace(t, attack=replace(t.attack, problem=problem), honest=replace(t.honest, problem=problem))
        for t in plain
    ]
    monkeypatch.setattr(tricks_part, "tricks", lambda: small)
    part = await tricks_part.tricks_on_device(small_place)
    table = {row[0]: row for row in part.tables[0].rows}
    assert table["by_address"][4] == "yes", table["by_address"]
    assert table["by_address"][7] == "yes", table["by_address"]
    assert table["lazy_output"][4] == "yes", table["lazy_output"]


@pytest.mark.slow
async def test_without_a_device_every_part_says_what_it_lacks(tmp_path):
    lines = []
    results = await measure(["worker", "timing", "tricks"], tmp_path, 100, lines.append)
    assert [one.part for one in results] == ["worker", "timing", "tricks"]
    for one in results:
        assert any(row.value is None for row in one.rows)
        assert any("cannot be opened" in text for text in one.lacks)
    assert read_found(tmp_path) == sorted(results, key=lambda one: PARTS.index(one.part))
