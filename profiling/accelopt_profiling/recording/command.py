"""Run a command with an observer in its Python processes, and write what it records beside the kernel files."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from accelopt_profiling.recording.call_log import ReadCalls, read_calls
from accelopt_profiling.recording.observer import RecordOptions
from accelopt_profiling.recording.recorded_call import (
    Recording,
    headline_first,
    recording_path,
    recording_text,
)
from accelopt_profiling.recording.start import FOLDER, OPTIONS, TARGET

_PYTHONS = ("python", "python3")
_PYTESTS = ("pytest", "py.test")
_GRACE_SECONDS = 10.0


@dataclass(frozen=True)
class RecordRequest:
    """A command to run in ``folder`` under the interpreter ``python``, and what to record of it.

    ``seconds`` ends the command; what it recorded until then counts. What it prints goes to the file descriptor
    ``output``.
    """

    command: Sequence[str]
    folder: Path
    python: str
    options: RecordOptions
    target: str = "h100"
    seconds: float = 300.0
    environment: Mapping[str, str] = field(default_factory=dict)
    output: int = 2


@dataclass(frozen=True)
class RecordedFile:
    """A recording that was written. ``kernels`` maps kernels to the number of shapes."""

    file: Path
    recording: Path
    kernels: dict[str, int]
    calls: int
    further: int = 0


@dataclass(frozen=True)
class RecordOutcome:
    """What a command came to: recordings, and why there are no more."""

    exit_code: int
    files: list[RecordedFile] = field(default_factory=list)
    launches: int = 0
    elsewhere: dict[str, int] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    executed: int = 0
    skipped: int = 0
    passed_over: int = 0
    device: str = ""
    ended: str = ""
    problems: list[str] = field(default_factory=list)


class CommandStartError(Exception):
    """The command could not be started."""


def record(request: RecordRequest, cancelled: Callable[[], bool] = lambda: False) -> RecordOutcome:
    """Run the command and write the recordings.

    Raises:
        CommandStartError: there is no such program.
    """
    with tempfile.TemporaryDirectory(prefix="accelopt-record-") as folder:
        code, ended = _run(request, Path(folder), cancelled)
        read = read_calls(Path(folder))
    return _outcome(request, read, code, ended)


def _run(request: RecordRequest, log: Path, cancelled: Callable[[], bool]) -> tuple[int, str]:
    """Run the command until it ends, its time is over or it is cancelled; return its exit code and why it was ended."""
    command = _resolved(request)
    try:
        process = subprocess.Popen(
            command, cwd=request.folder, env=_environment(request, log), stdin=subprocess.DEVNULL,
            stdout=request.output, stderr=request.output, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise CommandStartError(f"{command[0]} cannot be started: {error.strerror or error}.") from None
    ends, ended = time.monotonic() + request.seconds, ""
    try:
        while process.poll() is None and not ended:
            if cancelled():
                ended = "it was cancelled"
            elif time.monotonic() > ends:
                ended = f"its {request.seconds:.0f} s were over"
            else:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.2)
    finally:
        _end(process)
    return process.returncode, ended


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and all that it started: first as Ctrl-C does, so that it writes down what it has."""
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.poll() is None or number == signal.SIGKILL:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_SECONDS)


def _resolved(request: RecordRequest) -> list[str]:
    """Return the command with ``python`` and ``pytest`` meaning those of the request's interpreter."""
    name, *rest = request.command
    if name in _PYTHONS:
        return [request.python, *rest]
    if name in _PYTESTS:
        return [request.python, "-m", "pytest", *rest]
    return [shutil.which(name, path=_search_path(request)) or name, *rest]


def _search_path(request: RecordRequest) -> str:
    beside = str(Path(request.python).parent)
    return os.pathsep.join([beside, request.environment.get("PATH", os.environ.get("PATH", os.defpath))])


def _environment(request: RecordRequest, log: Path) -> dict[str, str]:
    inherited = {**os.environ, **request.environment}
    injected = str(Path(__file__).parent / "injected")
    plugins = ["accelopt_profiling.recording.pytest_plugin", inherited.get("PYTEST_PLUGINS", "")]
    options = RecordOptions(
        request.options.folders or (str(request.folder.resolve()),),
        tuple(os.path.realpath(f) for f in request.options.files),
        request.options.max_shapes,
    )
    return {
        **inherited,
        "PATH": _search_path(request),
        "PYTHONPATH": os.pathsep.join(p for p in (injected, inherited.get("PYTHONPATH", "")) if p),
        "PYTEST_PLUGINS": ",".join(p for p in plugins if p),
        "TORCHDYNAMO_DISABLE": inherited.get("TORCHDYNAMO_DISABLE", "1"),
        FOLDER: str(log), OPTIONS: json.dumps(asdict(options)), TARGET: request.target,
    }  # fmt: skip


def _outcome(request: RecordRequest, read: ReadCalls, code: int, ended: str) -> RecordOutcome:
    facts = read.facts

    def sums(name: str) -> dict[str, int]:
        return dict(sum((Counter(f.get(name, {})) for f in facts), Counter()))

    def total(name: str) -> int:
        return sum(int(f.get(name, 0)) for f in facts)

    def stated(name: str) -> list[str]:
        return [str(f[name]) for f in facts if f.get(name)]

    further, device = sums("further"), next(iter(stated("device")), "")
    files: list[RecordedFile] = []
    problems = stated("problem")
    for name, calls in sorted(read.calls.items()):
        path = Path(os.path.realpath(name))
        ordered = headline_first(calls)
        target = recording_path(path)
        try:
            text = recording_text(Recording(path.name, list(request.command), device, ordered))
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            problems.append(f"{target} cannot be written: {error.strerror or error}.")
            continue
        kernels = dict(Counter(kernel for call in ordered for kernel in call.kernels))
        count = sum(call.count for call in ordered)
        files.append(RecordedFile(path, target, kernels=kernels, calls=count, further=further.get(name, 0)))
    refused = {k: v for f in facts for k, v in f.get("refused", {}).items()}
    recorded = {k for f in files for k in f.kernels}
    return RecordOutcome(
        code, files, launches=total("launches"), elsewhere=sums("elsewhere"),
        refused={k: v for k, v in refused.items() if k.split(" ")[0] not in recorded},
        executed=total("executed"), skipped=total("skipped"), passed_over=total("passed_over"), device=device,
        ended=next(iter(stated("stopped")), ended), problems=problems,
    )  # fmt: skip


def summary(outcome: RecordOutcome) -> list[str]:
    """Say what a command came to, a sentence a line."""
    lines: list[str] = []
    for file in outcome.files:
        kernels = ", ".join(f"{k} ({_number(n, 'shape')})" for k, n in file.kernels.items())
        lines.append(f"Wrote {file.recording}: {kernels}.")
        if file.further:
            lines.append(
                f"  {_number(file.further, 'call')} of further shapes not kept; raise --max-shapes to keep more."
            )
        beside = file.file.with_name(f"{file.file.stem}_problem.py")
        if beside.exists():
            lines.append(f"  {beside.name} lies beside it and comes first.")
    if not outcome.device and outcome.executed + outcome.skipped:
        total = outcome.executed + outcome.skipped
        lines.append(
            f"There is no GPU: {outcome.executed} of {_number(total, 'launch', 'launches')} were interpreted. What a "
            "launch that was not run would have written is not known, so the command's own checks say little here."
        )
    if outcome.passed_over:
        lines.append(
            f"{_number(outcome.passed_over, 'test case')} passed over that would have added nothing."
        )
    for kernel, why in outcome.refused.items():
        lines.append(f"{kernel} cannot be recorded: {why}.")
    if outcome.ended:
        lines.append(f"The command was ended: {outcome.ended}.")
    elif outcome.exit_code:
        lines.append(f"The command ended with exit code {outcome.exit_code}.")
    return [*lines, *outcome.problems]


def _number(count: int, one: str, several: str = "") -> str:
    return f"{count} {one if count == 1 else several or f'{one}s'}"
