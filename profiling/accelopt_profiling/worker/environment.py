"""Choose the environment variables of a worker and its steps, so that no key reaches a process that runs user code.

A process shows the variables that it was started with in ``/proc/PID/environ`` as long as it lives, and a forked child
shows those of its parent, whatever either removes later. So the worker itself must be started with few variables.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

#: Tells a worker and its steps which Python they run in and where its name comes from, for messages.
INTERPRETER = "ACCELOPT_INTERPRETER"
#: Lists the variables that a person's settings give to steps, whatever they are called.
_GIVEN = "ACCELOPT_GIVEN_VARIABLES"
#: Variables of the host that a step sees.
_STEP_NAMES = frozenset({
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX",
    "ACCELOPT_NRTPY_PYTHON", INTERPRETER,
})  # fmt: skip
_STEP_PREFIXES = (
    "CUDA_", "NVIDIA_", "ROCM_", "HIP_", "ROCR_", "NEURON_", "TRITON_", "OMP_", "MKL_", "OPENBLAS_",
)  # fmt: skip
#: What the worker needs besides: where its folders lie, how its packages are imported.
_WORKER_NAMES = _STEP_NAMES | {
    "HOME", "USER", "LOGNAME", "TMPDIR", "TEMP", "TMP", "LD_PRELOAD",
}  # fmt: skip
_WORKER_PREFIXES = (
    *_STEP_PREFIXES,
    "ACCELOPT_",
    "PYTHON",
    "XDG_",
    "TORCH_",
    "PYTORCH_",
    "KMP_",
    "GOMP_",
    "MALLOC_",
)
#: Lets glibc keep the memory of arrays below 256 MiB for the next ones, 512 MiB of it, in place of asking each time for
#: fresh pages, which the kernel clears: a fifth less time for arithmetic on arrays of 8 MiB, and for a check on arrays
#: of 32 and 64 MiB a third less time in the kernel (mallopt(3)).
_ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(256 << 20), "MALLOC_TRIM_THRESHOLD_": str(512 << 20)}
#: Lets the threads of torch and OpenBLAS sleep at once where they have nothing to do. By their defaults they ask for
#: work again and again for a while: small products and sums took twice the processor time, more on a busy machine.
IDLE_THREADS = {"OMP_WAIT_POLICY": "PASSIVE", "OPENBLAS_THREAD_TIMEOUT": "4"}
#: ``NVIDIA_API_KEY`` begins like a toolchain's variable.
_SECRET = re.compile("KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH")
#: Runs ``main`` of the worker again from the folder or archive that it was imported from.
_RESTART = (
    "import sys; sys.path[:] = [{!r}, *(p for p in sys.path if p)]; "
    "from accelopt_profiling.worker.__main__ import main; main(restarted=True)"
)


def step_environment(folder: Path, host: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a step: the host's toolchain variables, and home, temporary and cache folders of its
    own.

    Triton's cache is the step's own, so that no candidate can leave compiled code there for another one.
    """
    own = {"HOME": folder / "home", "TMPDIR": folder / "tmp", "TRITON_CACHE_DIR": folder / "tmp" / "triton"}
    variables = _kept(host, _STEP_NAMES, _STEP_PREFIXES)
    return {**variables, **{name: str(path) for name, path in own.items()}, "PYTHONHASHSEED": "0"}


def given_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return what a worker is started with so that its steps see ``variables``."""
    return {**variables, _GIVEN: ",".join(sorted(variables))} if variables else {}


def interpreter_in_use() -> str:
    """Return the Python that this process runs in, for messages. With where its name comes from, if known."""
    return os.environ.get(INTERPRETER) or sys.executable


def worker_environment(host: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a worker is started with: those of ``host`` that it may see, and its libraries'."""
    return {**_ALLOCATOR, **IDLE_THREADS, **_kept(host, _WORKER_NAMES, _WORKER_PREFIXES)}


def restart_without_secrets() -> None:
    """Start this program anew in the same process when its environment is not a worker's.

    Standard input must not have been read beyond what belongs to the program that follows.
    """
    environment = worker_environment(os.environ)
    if sys.executable and environment != os.environ:
        command = [sys.executable, "-c", _RESTART.format(sys.path[0])]
        os.execve(sys.executable, command, environment)


def _kept(host: Mapping[str, str], names: frozenset[str], prefixes: tuple[str, ...]) -> dict[str, str]:
    extra = {_GIVEN, *host.get(_GIVEN, "").split(",")} if host.get(_GIVEN) else set()
    return {
        name: value
        for name, value in host.items()
        if name in names or name in extra or (name.startswith(prefixes) and not _SECRET.search(name))
    }
