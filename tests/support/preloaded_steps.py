"""A preloaded parent for tests: a program that imports torch and triton once and forks a child for every profile.

Requests and answers are lines of JSON. A request is ``{"files": {path: text}, "kernel": path, "problem": ProblemRef,
"target": name, "import_paths": [...], "detail": bool, "extent": name}``; the answer has ``partial`` (what was emitted,
each with its ``seconds`` since the fork), ``result`` or ``error``, and ``status`` of the child.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


class PreloadedSteps:
    """The client's side; a context manager."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> PreloadedSteps:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=120)

    def profile(
        self, files: dict[str, str], kernel: str, problem: dict[str, Any] | None, **rest: Any
    ) -> dict[str, Any]:
        """Profile all kernels of one file and wait for the end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"files": files, "kernel": kernel, "problem": problem, **rest}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the preloaded parent ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def profile_path(self, path: Path, problem: Path | None = None, **rest: Any) -> dict[str, Any]:
        """Profile a file on disk with the problem the product would find for it."""
        from accelopt_profiling.examination import examine
        from accelopt_profiling.plain import to_plain

        text = path.read_text()
        found = examine(path, text).problem
        files = {path.name: text}
        beside = path.with_name(f"{path.stem}_problem.py")
        if beside.exists():
            files[beside.name] = beside.read_text()
        return self.profile(files, path.name, to_plain(found.ref), **rest)


def _serve() -> None:
    import torch  # noqa: F401
    import triton  # noqa: F401

    from accelopt_profiling.triton import profile  # noqa: F401

    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)  # what children print is not an answer
        for line in sys.stdin:
            print(json.dumps(_answer(json.loads(line))), file=out, flush=True)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory(prefix="accelopt-test-") as folder:
        started = time.perf_counter()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _child(request, Path(folder), os.fdopen(writing, "w"), started)
        os.close(writing)
        answer: dict[str, Any] = {"partial": [], "result": None, "error": None}
        with os.fdopen(reading) as frames:
            for line in frames:
                kind, value, seconds = json.loads(line)
                if kind == "partial":
                    answer["partial"].append({**value, "seconds": seconds})
                else:
                    answer[kind] = value
        _, status = os.waitpid(pid, 0)
        return {**answer, "status": os.waitstatus_to_exitcode(status)}


def _child(request: dict[str, Any], folder: Path, out: Any, started: float) -> None:
    from accelopt_profiling.jobs import ProfileParams, Source
    from accelopt_profiling.kernels import find_kernels
    from accelopt_profiling.plain import from_plain, to_plain
    from accelopt_profiling.problems.ref import ProblemRef
    from accelopt_profiling.triton.profile import profile
    from accelopt_profiling.worker.job_folders import write_sources
    from accelopt_profiling.worker.step_context import StepContext, StepFailedError
    from accelopt_profiling.worker.usercode import enter_sources

    def send(kind: str, value: Any) -> None:
        print(json.dumps([kind, to_plain(value), time.perf_counter() - started]), file=out, flush=True)

    source = Source(request["kernel"], request["files"], request.get("import_paths", []))
    context = StepContext(folder, source, lambda value: send("partial", value))
    write_sources(folder / "src", source.files)
    enter_sources(context)
    kernels = [k for k in find_kernels(request["files"][request["kernel"]]).kernels if not k.device_function]
    problem = from_plain(ProblemRef, request["problem"]) if request["problem"] else None
    options = {name: request[name] for name in ("detail", "extent", "launches") if name in request}
    params = ProfileParams(kernels, problem, request.get("target", "h100"), **options)
    try:
        send("result", profile(context, params))
    except StepFailedError as failed:
        send("error", failed.error)
    os._exit(0)


if __name__ == "__main__":
    _serve()
