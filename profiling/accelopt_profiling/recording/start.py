"""Start watching a Python process that the record command started: called by ``injected/sitecustomize.py``."""

from __future__ import annotations

import atexit
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from accelopt_profiling.after_import import after_import
from accelopt_profiling.plain import from_plain
from accelopt_profiling.recording.call_log import CallLog
from accelopt_profiling.recording.observer import LaunchObserver, RecordOptions
from accelopt_profiling.recording.open_calls import OpenCalls, install
from accelopt_profiling.triton.launch import with_constants
from accelopt_profiling.triton_adapter.versions import unsupported

#: Variables of the command's environment: the folder for the log, the options as JSON, the target to emulate.
FOLDER, OPTIONS, TARGET = "ACCELOPT_RECORD_FOLDER", "ACCELOPT_RECORD_OPTIONS", "ACCELOPT_RECORD_TARGET"
#: The observer of this process, for the pytest plugin.
_OBSERVER = "_accelopt_observer"


def start(environment: Mapping[str, str]) -> None:
    """Watch the launches of this process. Nothing heavy is imported before the program imports torch."""
    log = CallLog(Path(environment[FOLDER]))
    calls = OpenCalls()
    observer = LaunchObserver(from_plain(RecordOptions, json.loads(environment[OPTIONS])), calls, log)
    install(calls)
    setattr(sys, _OBSERVER, observer)
    after_import("torch", lambda _: _watch(observer, log, environment.get(TARGET, "h100")))


def current_observer() -> LaunchObserver | None:
    """Return the observer of this process."""
    return getattr(sys, _OBSERVER, None)


def _watch(observer: LaunchObserver, log: CallLog, target: str) -> None:
    """Hook Triton's launches. On a machine without a GPU, answer CUDA calls first."""
    import torch

    try:
        import triton

        problem = unsupported(triton.__version__, sys.executable)
    except ImportError:
        problem = f"{sys.executable} has torch but no Triton, so no kernel can be launched."
    if problem:
        log.note(problem=problem)
        log.flush()
        return
    from accelopt_profiling.triton_adapter.runtime import Autotuner, CompiledKernel, JITFunction

    emulation = None
    compiled: list[Any] = [CompiledKernel]
    if torch.cuda.is_available():
        log.note(device=torch.cuda.get_device_name())
    else:
        # late: it imports Triton, which a watched program may want to import itself, or never
        from accelopt_profiling.recording.emulation import RecordingEmulation
        from accelopt_profiling.triton.capture.driver import DeferredKernel

        compiled.append(DeferredKernel)
        emulation = RecordingEmulation(target)
    run, try_one = JITFunction.run, Autotuner._bench
    tried = 0

    def watched(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if not (warmup or tried):
            observer.launched(kernel, grid, args, kwargs)
        return run(kernel, *args, grid=grid, warmup=warmup, **kwargs)

    def tuned(*args: Any, **kwargs: Any) -> Any:
        nonlocal tried
        tried += 1
        try:
            return try_one(*args, **kwargs)
        finally:
            tried -= 1

    JITFunction.run, Autotuner._bench = watched, tuned
    for owner in compiled:
        owner.__getitem__ = _relaunches(owner.__getitem__, observer)
    observer.enough = lambda: _stop(log)
    owner = os.getpid()

    def finish() -> None:
        if emulation is not None and os.getpid() == owner:
            log.note(executed=emulation.executed, skipped=emulation.skipped)
        log.flush()

    atexit.register(finish)


def _relaunches(select: Callable[..., Any], observer: LaunchObserver) -> Callable[..., Any]:
    """Return ``kernel[grid]`` of a compiled kernel whose launches the observer is told of: libraries keep compiled
    kernels and launch them past the jitted function.
    """

    def selected(kernel: Any, grid: Any) -> Any:
        launch, jitted = select(kernel, grid), getattr(kernel.src, "fn", None)

        def launched(*args: Any, **kwargs: Any) -> Any:
            if jitted is not None:
                observer.launched(jitted, grid, with_constants(jitted, kernel.src, args), {})
            return launch(*args, **kwargs)

        return launched

    return selected


def _stop(log: CallLog) -> None:
    """End the program as Ctrl-C does: everything that was asked for is recorded."""
    log.note(stopped="every kernel has all the shapes that are kept")
    log.flush()
    raise KeyboardInterrupt("accelopt record: all the shapes that are kept are recorded")
