"""What can be known of timing on a GPU without one: which device is meant, what is outside the timed call, and that a
preloaded parent, from which timed steps are forked, has opened no device.
"""

import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from accelopt_profiling.problems.problem import Call, OutputSpec, Problem
from accelopt_profiling.timing import time_step
from accelopt_profiling.timing.device import TorchDevice
from accelopt_profiling.timing.inputs import each_tensor
from accelopt_profiling.timing.time_step import timed_call
from accelopt_profiling.worker.preloaded_parent import _NEEDED, _WANTED


class FakeEvent:
    def __init__(self, enable_timing):
        assert enable_timing
        self.said = []

    def record(self):
        self.said.append("recorded")

    def synchronize(self):
        self.said.append("waited")

    def elapsed_time(self, end):
        return 7.0 if self.said == end.said else -1.0


class FakeTorch:
    """As much of ``torch`` as a device asks of it; the second GPU of a machine is the current one."""

    int8 = "int8"

    def __init__(self, hip=None, uuid="5c2e", pci=None):
        self.version = SimpleNamespace(hip=hip)
        properties = [
            SimpleNamespace(name="first", uuid="0000", L2_cache_size=1),
            SimpleNamespace(name="second", uuid=uuid, L2_cache_size=50 << 20, **(pci or {})),
        ]
        self.cuda = SimpleNamespace(
            Event=FakeEvent, synchronize=lambda: None, is_current_stream_capturing=lambda: False,
            current_device=lambda: 1, get_device_properties=properties.__getitem__,
        )  # fmt: skip
        self.made = []

    def empty(self, size, **more):
        self.made.append(size)
        return SimpleNamespace(zero_=lambda: self.made.append("overwritten"))


@pytest.mark.parametrize(
    ("fake", "identifier", "scratch"),
    [
        (FakeTorch(), "GPU-5c2e", 100 << 20),
        (FakeTorch(uuid="MIG-5c2e"), "MIG-5c2e", 100 << 20),
        (FakeTorch(uuid=""), None, 100 << 20),
        (FakeTorch(hip="6.2"), None, 512 << 20),
        (
            FakeTorch(hip="6.2", pci={"pci_domain_id": 0, "pci_bus_id": 193, "pci_device_id": 0}),
            "0000:c1:00.0",
            512 << 20,
        ),
    ],
)
def test_the_current_device_is_meant_and_its_caches_overwritten(fake, identifier, scratch):
    device = TorchDevice(fake)
    assert (device.name, device.identifier) == ("second", identifier)
    device.empty_caches()
    assert fake.made == [scratch, "overwritten"]


def test_a_candidate_that_patches_events_or_synchronisation_is_timed_all_the_same(monkeypatch):
    fake = FakeTorch()
    waits = []
    fake.cuda.synchronize = lambda: waits.append("device")
    device = TorchDevice(fake)
    fake.cuda.synchronize = lambda: None
    monkeypatch.setattr(FakeEvent, "elapsed_time", lambda self, end: 0.001)
    monkeypatch.setattr(FakeEvent, "record", lambda self: None)
    start, end = device.event(), device.event()
    for event in (start, end):
        event.record()
        event.synchronize()
    device.synchronize()
    assert start.elapsed_time(end) == 7.0
    assert start.made.said == ["recorded", "waited"]
    assert waits == ["device"]


def problem(call: Call, arguments: list):
    return Problem(lambda seed, shape=None: arguments, lambda drawn: (call, arguments))


def test_a_model_is_built_once_for_all_inputs(monkeypatch):
    monkeypatch.setattr(time_step, "on_device", lambda value: each_tensor(value, lambda x: x + 10))
    module, built, sizes = ModuleType("k"), {}, []

    class ModelNew:
        def __init__(self, size):
            sizes.append(size)

        def __call__(self, x):
            return x + 1

    module.ModelNew = ModelNew
    inputs = [torch.zeros(2), torch.ones(2)]
    problems = [problem(Call("ModelNew", "model"), [[4], [x]]) for x in inputs]
    made_calls = [timed_call(module, each, [x], built) for each, x in zip(problems, inputs, strict=True)]
    assert sizes == []
    assert [[float(out[0][0]) for out in (call.run(), call.run())] for call in made_calls] == [
        [11, 11],
        [12, 12],
    ]
    assert sizes == [4]


def test_outputs_of_the_caller_are_allocated_before():
    module, outputs = ModuleType("k"), []
    module.fill = lambda x, out: outputs.append(out)
    call = timed_call(
        module, problem(Call("fill", "destination", [OutputSpec([3], "float32")]), [1]), [1], {}
    )
    assert call.run() == call.run() == [outputs[0]]
    assert outputs[0] is outputs[1]
    assert bool(torch.isnan(outputs[0]).all())


def test_a_file_that_runs_itself_is_run():
    module, calls = ModuleType("k"), []
    module.test_it = lambda: calls.append("test_it")
    assert timed_call(module, problem(Call("", "script", methods=["test_it"]), []), [], {}).run() == []
    assert calls == ["test_it"]


@pytest.mark.slow
def test_a_warm_parent_opens_no_device():
    """The driver does not survive a fork; asking CUDA how many devices there are is enough to open it."""
    modules = (*_NEEDED["torch"], *_WANTED["torch"])
    code = (
        "import importlib, torch\n"
        "def opened(*_): raise SystemExit('the driver was opened')\n"
        "for name in ('_cuda_getDeviceCount', '_cuda_init'): setattr(torch._C, name, opened)\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "assert not torch.cuda.is_initialized()\n"
        "from triton.runtime import driver\n"
        "assert driver._active is None"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
