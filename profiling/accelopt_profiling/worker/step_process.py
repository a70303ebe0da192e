"""Run one step in the child process that was forked for it, inside its sandbox where there is one."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import traceback
from pathlib import Path
from typing import Any, NoReturn

from accelopt_profiling.jobs import JobFiles, Limits, StepError
from accelopt_profiling.plain import to_plain
from accelopt_profiling.step_context import StepContext, step_error
from accelopt_profiling.worker.confinement import Confinement, confine, refuse_system_calls
from accelopt_profiling.worker.environment import step_environment
from accelopt_profiling.worker.frames import sealer
from accelopt_profiling.worker.limits import apply_limits, die_with_parent
from accelopt_profiling.worker.running_step import UNHEARD
from accelopt_profiling.worker.sandbox import Sandbox
from accelopt_profiling.worker.sandbox_plan import SandboxPlan
from accelopt_profiling.worker.steps import find_step
from accelopt_profiling.worker.usercode import enter_sources


def run_step(
    name: str, params: dict[str, Any], folder: Path, source: JobFiles, limits: Limits, frames: int, output: int,
    key: bytes, background: bool, needs: Confinement, plan: SandboxPlan, sandbox: Sandbox | None,
) -> NoReturn:  # fmt: skip
    """Run one step and end the process.

    Messages go to the descriptor ``frames``, sealed with ``key``, printed text to ``output``. The exit status is 0 if
    the answer was sent.

    The process was forked into the PID namespace of ``sandbox``, if any, and joins its network and mounts here.
    """
    os.setpgid(0, 0)  # no session of its own: its low priority counts only among those that share one
    die_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    if background:
        os.nice(10)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)

    seal, write, leave = sealer(key), os.write, os._exit
    del key

    def send(message: dict[str, Any]) -> None:
        data = memoryview(seal(message))
        while data:
            data = data[write(frames, data) :]

    error: StepError | None = None
    try:
        confine(plan, sandbox, folder, needs)
        _close_all_but({0, 1, 2, frames})
        os.chdir(folder / "work")
        environment = step_environment(folder, os.environ.copy())
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None  # the preloaded parent may have looked for its own already
        apply_limits(limits, watched=sandbox is not None, device=needs.device)
        context = StepContext(
            folder, source, lambda value: send({"type": "partial", "value": to_plain(value)})
        )
        enter_sources(context)
        refuse_system_calls(sandbox, needs.device)
        value = find_step(name, params)(context)
        send({"type": "result", "value": to_plain(value)})
    except BaseException as raised:
        error = step_error(name, raised, _traceback())
    try:
        if error is not None:
            send({"type": "error", "error": to_plain(error)})
    except BaseException:
        leave(UNHEARD)
    leave(0)


def _traceback() -> str:
    return traceback.format_exc()[-4000:]


def _close_all_but(keep: set[int]) -> None:
    highest = max(keep)
    for descriptor in range(3, highest):
        if descriptor not in keep:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    os.closerange(highest + 1, 4096)
