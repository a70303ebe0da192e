"""Where the real SDK is importable its simulator runs the kernels, and the emulator still says what they cost.

The SDK itself is on AWS's package index only. Here a package of the same name stands in for it, with a simulator that
runs kernels on NumPy and writes down what it was asked to do. The comparison with the real one is at the end of this
file; it exists where the SDK does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.nki_kernels import ONE_TILE

from accelopt_profiling.nki.install import emulated, sdk_present
from accelopt_profiling.nki.sdk import real_packages

LANGUAGE = """\
import numpy as np
shared_hbm = "shared_hbm"
def ndarray(shape, dtype, buffer=None): return np.zeros(shape, dtype)
def load(x): return np.array(x)
def store(dst, value): dst[...] = value
def multiply(x, y): return np.multiply(x, y)
def sigmoid(x): return 1 / (1 + np.exp(-x))
"""

PACKAGE = """\
import os
calls = []
class Real:
    def __init__(self, function, **options): self.function, self.options = function, options
    def __call__(self, *args): raise RuntimeError("a kernel was compiled for a device that is not there")
def jit(function, **options): return Real(function, **options)
def _run(kernel, args):
    calls.append([kernel.function.__name__, os.environ["NEURON_PLATFORM_TARGET_OVERRIDE"]])
    return kernel.function(*args)
"""

SIMULATORS = {
    "nki": "def simulate(kernel): return lambda *args: _run(kernel, args)\n",
    "neuronxcc.nki": "def simulate_kernel(kernel, *args): return _run(kernel, args)\n",
}

PROFILE = """\
import json, sys
from pathlib import Path
from accelopt_profiling.jobs import ProfileParams, JobFiles
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.nki.profile import profile
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.step_context import StepContext

folder = Path(sys.argv[1])
text = (folder / "src" / "kernel.py").read_text()
context = StepContext(folder, JobFiles("kernel.py", {"kernel.py": text}), lambda value: None)
(kernel,) = profile(context, ProfileParams(list(find_kernels(text).kernels), ProblemRef("module"), sys.argv[2]))
calls = getattr(sys.modules.get(sys.argv[3]), "calls", [])
print(json.dumps([calls, kernel.correctness.status, kernel.toolchain["nki"], kernel.latency.known.value]))
"""


def profiled(folder: Path, dotted: str, target: str, package: str | None) -> Any:
    """Profile ``ONE_TILE`` in a new interpreter, with ``package`` as the SDK."""
    place = folder.joinpath("sdk", *dotted.split("."))
    place.mkdir(parents=True)
    (folder / "sdk" / dotted.split(".")[0] / "__init__.py").touch()
    (place / "language.py").write_text(LANGUAGE)
    (place / "__init__.py").write_text(PACKAGE + SIMULATORS[dotted] if package is None else package)
    (folder / "src").mkdir()
    (folder / "src" / "kernel.py").write_text(ONE_TILE.format(dotted=dotted))
    code = f"import sys; sys.path.insert(0, {str(folder / 'sdk')!r})\n{PROFILE}"
    command = [sys.executable, "-c", code, str(folder), target, dotted]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(("dotted", "target"), [("nki", "trn2"), ("neuronxcc.nki", "trn1")])
def test_the_simulator_of_the_sdk_is_used_and_the_estimate_stays(
    dotted: str, target: str, tmp_path: Path
) -> None:
    done = profiled(tmp_path, dotted, target, None)
    assert done.returncode == 0, done.stderr
    calls, correctness, toolchain, latency = json.loads(done.stdout)
    assert calls == [["silu", target]]
    assert correctness == "passed"
    assert toolchain == f"simulator of the SDK ({dotted})"
    assert latency == "estimated"


@pytest.mark.parametrize("package", ["raise ImportError('wrong package')", "version = '0.0.1'"])
def test_a_placeholder_of_that_name_is_not_the_sdk(package: str, tmp_path: Path) -> None:
    done = profiled(tmp_path, "nki", "trn2", package)
    assert done.returncode == 0, done.stderr
    _, correctness, toolchain, latency = json.loads(done.stdout)
    assert (correctness, toolchain, latency) == ("passed", "emulated", "estimated")


if real_packages():  # where the SDK is installed, its simulator and the emulator agree

    def _both(dotted: str) -> tuple[Any, Any]:
        x = np.random.default_rng(0).standard_normal((128, 512)).astype(np.float32)
        results = []
        for sdk in (True, False):
            with emulated(sdk=sdk):
                space: dict[str, Any] = {}
                exec(compile(ONE_TILE.format(dotted=dotted), "kernel.py", "exec"), space)  # noqa: S102
                results.append(space["silu"](x))
        return results[0], results[1]

    @pytest.mark.parametrize("dotted", sorted(real_packages()))
    def test_the_sdk_and_the_emulator_agree(dotted: str) -> None:
        theirs, ours = _both(dotted)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_the_stand_ins_are_not_taken_for_the_sdk() -> None:
    before = sdk_present()
    with emulated(sdk=False):
        import neuronxcc.nki  # noqa: F401

        assert not sdk_present()
    assert sdk_present() == before
