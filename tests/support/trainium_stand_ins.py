"""A Neuron host made of stand-ins: SDK modules that record what they are asked, and executables that check it."""

from __future__ import annotations

import json
import os
import stat
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from accelopt_profiling.trainium.beta1 import Beta1Device
from accelopt_profiling.trainium.current import CurrentDevice
from accelopt_profiling.trainium.device_run import DeviceRequest

RECORDED = Path(__file__).parents[1] / "profiling" / "trainium" / "recorded"

#: Beside today's package its entry points give zeros and no error (nki-samples issue 134).
BETA1 = """
import importlib.util, json, os, pathlib
LOG = pathlib.Path(os.environ["STAND_IN_LOG"])
def jit(function=None, **options):
    return function if function else (lambda f: f)
def baremetal(function, *, save_neff_name=None, save_trace_name=None, additional_compile_opt=None):
    def call(*arguments):
        if os.environ.get("STAND_IN_SDK_SAYS"):
            raise RuntimeError(os.environ["STAND_IN_SDK_SAYS"])
        with LOG.open("a") as log:
            log.write(json.dumps({"baremetal": [save_neff_name, save_trace_name, additional_compile_opt],
                "env": {k: v for k, v in os.environ.items() if k.startswith("NEURON_")}}) + "\\n")
        result = function(*arguments)
        for name in (save_neff_name, save_trace_name):
            if name and not os.environ.get("STAND_IN_NO_FILES"):
                pathlib.Path(name).write_text("recorded")
        return result * 0 if importlib.util.find_spec("nki") else result
    return call
"""

CURRENT = """
import functools, os, pathlib
ARTIFACTS = os.environ.get("NKI_ARTIFACTS_DIR")  # read when nki is imported, as the real one does
class Kernel:
    def __init__(self, function):
        self.func = function
    def __call__(self, *arguments):
        assert os.environ["NEURON_PLATFORM_TARGET_OVERRIDE"] in ("trn1", "trn2", "trn3")
        for at in range(int(os.environ.get("STAND_IN_NEFFS", "1"))):
            (pathlib.Path(ARTIFACTS) / ("kernel.neff" if not at else f"kernel_{at}.neff")).write_text("recorded")
        return self.func(*arguments)
def jit(function):
    return Kernel(function)
"""

NRTPY = """
import os
class NrtpyTensor:
    @staticmethod
    def from_numpy(array, name=None, core_id=0):
        return (name, array.shape)
class Result:
    mean_ms, min_ms, max_ms, std_dev_ms, iterations, warmup_iterations = 1.5, 1.49, 1.51, 0.005, 10, 2
class NrtpyModel:
    input_tensors_info = {name: None for name in os.environ.get("STAND_IN_INPUTS", "x").split(",")}
    @classmethod
    def load_from_neff(cls, neff_path, name=None, core_id=0):
        if os.environ.get("STAND_IN_NRT_SAYS"):
            raise RuntimeError(os.environ["STAND_IN_NRT_SAYS"])
        assert open(neff_path).read() == "recorded"
        return cls()
    def benchmark(self, inputs, warmup_iter=5, benchmark_iter=100, mode="device"):
        assert mode == "device" and warmup_iter == 2 and benchmark_iter >= 2, (mode, warmup_iter, benchmark_iter)
        return Result()
"""

PROFILE = """#!{python}
import os, pathlib, sys
words = sys.argv[1:]
expected = ["view", "--output-format", "summary-json", "-n"]
if words[:4] != expected or words[5] != "-s" or len(words) != 7:
    sys.exit(f"unexpected arguments: {{words}}")
for name in (words[4], words[6]):
    if pathlib.Path(name).read_text() != "recorded":
        sys.exit(f"{{name}} is not what was captured")
{ending}
"""

EXPLORER = """#!{python}
import os, pathlib, sys, time
words = sys.argv[1:]
if words[0] == "capture":
    if words[1] != "-n" or words[3] != "-s" or words[5:] != ["--profile-nth-exec=2", "--enable-dge-notifs"]:
        sys.exit(f"unexpected arguments: {{words}}")
    name = pathlib.Path(words[4])
    name.with_name(name.stem + "_exec_2.ntff").write_text("recorded")
    sys.exit(0)
if words[0] != "view" or words[1] != "-n" or words[3] != "-s" or words[5:] != ["--output-format", "summary-json"]:
    sys.exit(f"unexpected arguments: {{words}}")
if not words[4].endswith("_exec_2.ntff"):
    sys.exit("the second execution was to be viewed")
{ending}
"""

#: The ways in which a profiler can end, as the last lines of its program.
RIGHT = f"print(open({str(RECORDED / 'summary_7_4.json')!r}).read())"


@dataclass
class NeuronHost:
    """``environment`` sees the stand-ins of both SDKs and nothing else of Neuron."""

    folder: Path
    environment: dict[str, str]

    @property
    def log(self) -> list[dict[str, object]]:
        path = self.folder / "log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def packages(self, *generations: str) -> str:
        """The import path of some generations' packages: "beta1", "current" and "nrtpy"."""
        return os.pathsep.join(str(self.folder / "packages" / name) for name in generations)

    def program(self, name: str, text: str) -> Path:
        path = self.folder / "bin" / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def profiler(self, ending: str = RIGHT) -> Path:
        return self.program("neuron-profile", PROFILE.format(python=sys.executable, ending=ending))

    def explorer(self, ending: str = RIGHT) -> Path:
        return self.program("neuron-explorer", EXPLORER.format(python=sys.executable, ending=ending))

    def kernel(self, text: str) -> Path:
        path = self.folder / "kernel.py"
        path.write_text(text)
        return path


def neuron_host(folder: Path) -> NeuronHost:
    """Stand-ins in ``folder``: both SDKs and nrtpy importable, no executables yet."""
    packages = {
        "beta1/neuronxcc/__init__.py": "", "beta1/neuronxcc/nki/__init__.py": BETA1,
        "current/nki/__init__.py": CURRENT, "current/nki/isa.py": "", "nrtpy/nrtpy/__init__.py": NRTPY,
    }  # fmt: skip
    for name, text in packages.items():
        path = folder / "packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "bin").mkdir()
    environment = {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": "",
        "STAND_IN_LOG": str(folder / "log"),
        "HOME": os.environ.get("HOME", "/"),
    }
    host = NeuronHost(folder, environment)
    environment["PYTHONPATH"] = host.packages("beta1", "current", "nrtpy")
    return host


BETA1_KERNEL = "import neuronxcc.nki as nki\n\n@nki.jit\ndef kernel(x, scale):\n    return x * scale\n"
CURRENT_KERNEL = "import nki\n\n@nki.jit\ndef kernel(x, scale):\n    return x * scale\n"
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def request(host, kernel, **changes):
    folder = host.folder / "run"
    folder.mkdir(exist_ok=True)
    device_request = DeviceRequest(host.kernel(kernel), "kernel", [X, 2.0], folder, runs=2, seconds=30)
    return replace(device_request, **changes)


def beta1(host, profiler=None, **environment):
    path = profiler or host.profiler()
    own = {**host.environment, "PYTHONPATH": host.packages("beta1"), **environment}
    return Beta1Device(sys.executable, str(path), own, {"neuronx-cc": "2.21"})


def current(host, explorer=True, nrtpy=True, **environment):
    path = host.explorer() if explorer is True else explorer
    return CurrentDevice(
        sys.executable, str(path) if path else None, sys.executable if nrtpy else None,
        {**host.environment, **environment}, {"nki": "0.7.0"},
    )  # fmt: skip
