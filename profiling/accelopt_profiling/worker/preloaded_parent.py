"""Preloaded parents: processes that import a runtime's packages, execute no user code, and fork one child per step.

``PreloadedParent`` is the supervisor's side, ``serve`` the process. They talk over a socket: requests carry the step
and the descriptors of its pipes, answers say which process was started and how it ended.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import mmap
import os
import selectors
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from accelopt_profiling.jobs import JobFiles, Limits, Runtime, StepError
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.step_context import host_error
from accelopt_profiling.triton_adapter.versions import unsupported
from accelopt_profiling.worker.confinement import Confinement
from accelopt_profiling.worker.environment import interpreter_in_use
from accelopt_profiling.worker.frames import sealer
from accelopt_profiling.worker.limits import (
    TOO_MANY_PROCESSES,
    TOO_MUCH_MEMORY,
    TOO_MUCH_WRITTEN,
    adopt_orphans,
    die_with_parent,
)
from accelopt_profiling.worker.sandbox import Sandbox, SandboxLauncher
from accelopt_profiling.worker.sandbox_plan import SandboxPlan
from accelopt_profiling.worker.step_process import run_step
from accelopt_profiling.worker.steps import modules

#: How many seconds a runtime's packages may take to import, from a slow network drive too.
_IMPORT_SECONDS = 300.0
#: What each runtime imports ahead of time: needed packages, then ones that are imported if they are there.
_NEEDED: dict[Runtime, tuple[str, ...]] = {"numpy": ("numpy",), "torch": ("numpy", "torch", "triton")}
_WANTED: dict[Runtime, tuple[str, ...]] = {
    "numpy": ("ml_dtypes", "accelopt_profiling.nki.profile", *modules("gate.")),
    "torch": (
        "accelopt_profiling.triton.profile",
        "accelopt_profiling.triton_adapter.compiler",
        "accelopt_profiling.gate.observe.launch_coverage",
        *modules("gate."),
    ),
}
#: What each runtime imports once a step has imported it, or it has had nothing to do for a while after a first step:
#: parts of those packages that many libraries import, and that take seconds. Torch's compiler (its two halves) is over
#: half of what the imports of such a library take.
_LATER: dict[Runtime, tuple[str, ...]] = {
    "numpy": ("numpy.ma", "numpy.random"),
    "torch": ("sympy", "torch._dynamo", "torch._inductor.compile_fx"),
}
_IDLE_SECONDS = 3.0
_WHY = {TOO_MUCH_MEMORY: "memory", TOO_MANY_PROCESSES: "processes", TOO_MUCH_WRITTEN: "written"}
LARGEST_TOKEN = 64


@dataclass
class StepStarted:
    """The child of the step ``token`` is the process ``pid``."""

    token: str
    pid: int


@dataclass
class StepEnded:
    """A child's end: ``status`` is its exit code, negative for the signal that ended it.

    ``why`` is "memory", "processes" or "written" when all processes of the step together went beyond a limit.
    """

    token: str
    status: int
    why: str = ""


class PreloadedParent:
    """A preloaded parent as the supervisor sees it.

    Its process starts with this object.

    ``plan`` is what its sandboxes have in common, ``sandboxed`` whether each step gets namespaces of its own. Once
    ``ready``, ``missing`` says what it lacks, if anything. When it is not ready by its ``deadline``, it hangs.
    """

    def __init__(self, runtime: Runtime, plan: SandboxPlan, sandboxed: bool) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            keep = theirs.fileno()
            os.closerange(3, keep)
            os.closerange(keep + 1, 4096)
            serve(theirs, runtime, plan, sandboxed)
        theirs.close()
        self.runtime = runtime
        self.ready = False
        self.deadline = time.monotonic() + _IMPORT_SECONDS
        self.missing: str | None = None
        self._control = ours
        self._control.setblocking(False)

    def fileno(self) -> int:
        return self._control.fileno()

    @property
    def ended_error(self) -> StepError:
        """The answer of its steps when it has ended by itself."""
        what = f"The worker's {self.runtime} process ended unexpectedly"
        return StepError("crashed", f"{what}; save again to start it anew.")

    @property
    def missing_error(self) -> StepError:
        """The answer of its steps when it lacks a package, or has one that does not work here."""
        return StepError("missing-package", str(self.missing))

    def request(self, token: str, body: dict[str, Any], base: Path, frames: int, output: int) -> None:
        """Ask for a child that runs the step in ``body`` and writes to the descriptors ``frames`` and ``output``.

        The body travels in a file, as it may be larger than a socket message; the file has no name, as earlier steps
        of the job may have left links of any name.

        Raises:
            ConnectionError: the process has ended.
            OSError: there is no room for the file in ``base``.
        """
        with tempfile.TemporaryFile(dir=base) as file:
            file.write(json.dumps(body).encode())
            file.flush()
            socket.send_fds(self._control, [token.encode()], [frames, output, file.fileno()])

    def read(self) -> list[StepStarted | StepEnded] | None:
        """Return the messages that have arrived; None when it has ended."""
        messages: list[StepStarted | StepEnded] = []
        while True:
            try:
                data = self._control.recv(1 << 16)
            except BlockingIOError:
                return messages
            except OSError:
                return None
            if not data:
                return None
            message = json.loads(data)
            if "ready" in message:
                self.ready, self.missing = True, message["missing"]
            elif "started" in message:
                messages.append(StepStarted(message["started"], message["pid"]))
            else:
                messages.append(StepEnded(message["ended"], message["status"], message.get("why", "")))

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Let it end what it started, and itself.

        While it imports it cannot read the request, and is killed.
        """
        self._control.close()
        if not self.ready:
            self.kill()

    def wait(self) -> None:
        """Wait until it has ended, after ``close``."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def serve(control: socket.socket, runtime: Runtime, plan: SandboxPlan, sandboxed: bool) -> NoReturn:
    """Import, report, then fork a child per request until the supervisor closes the socket."""
    sandboxes = SandboxLauncher(plan) if sandboxed else None
    die_with_parent()
    adopt_orphans()
    os.setpgid(0, 0)
    missing = _import_all(runtime)
    gc.collect()
    gc.freeze()  # children share these pages as long as the collector leaves them alone
    _send(control, {"ready": True, "missing": missing})
    _StepForker(control, plan, sandboxes, _LATER[runtime] if missing is None else ()).loop()


def _import_all(runtime: Runtime) -> str | None:
    """Import what a runtime needs.

    Return why its steps cannot run, and what to do, if anything is missing.
    """
    for name in _NEEDED[runtime]:
        try:
            module = importlib.import_module(name)
        except Exception as error:
            what = str(error.name) if isinstance(error, ModuleNotFoundError) else f"{name}: {error}"
            return (
                f"{what} cannot be imported in {interpreter_in_use()}, where kernels run: pip install "
                "'accelopt-lsp[triton]' there or name another Python in the setting `python`, then save again."
            )
        if name == "triton" and (reason := unsupported(str(module.__version__), sys.executable)):
            return reason
    for name in _WANTED[runtime]:
        with contextlib.suppress(Exception):  # the step that needs it will say what is wrong with it
            importlib.import_module(name)
    return None


def _send(control: socket.socket, message: dict[str, Any]) -> None:
    control.send(json.dumps(message).encode())


class SharedImports(MetaPathFinder):
    """Notes in memory that a process shares with its children which of ``modules`` they import; finds none itself."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._places = {name: place for place, name in enumerate(modules)}
        self._seen = mmap.mmap(-1, max(1, len(modules)))

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if (place := self._places.get(name)) is not None:
            self._seen[place] = 1

    def seen(self, modules: Sequence[str]) -> bool:
        """Return True when a child has imported the first of ``modules``."""
        return bool(modules) and bool(self._seen[self._places[modules[0]]])


class _StepForker:
    """Forks children and reports their ends; runs in the preloaded parent's process."""

    def __init__(
        self,
        control: socket.socket,
        plan: SandboxPlan,
        sandboxes: SandboxLauncher | None,
        later: tuple[str, ...],
    ) -> None:
        self._control, self._plan, self._sandboxes = control, plan, sandboxes
        self._later, self._served = list(later), False
        self._imports = SharedImports(later)
        self._children: dict[int, tuple[str, Sandbox | None]] = {}  # pid -> token and sandbox
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(self._wake_write.fileno(), warn_on_full_buffer=False)

    def loop(self) -> NoReturn:
        selector = selectors.DefaultSelector()
        selector.register(self._control, selectors.EVENT_READ)
        selector.register(self._wake_read, selectors.EVENT_READ)
        while True:
            idle = self._served and self._later and not self._children
            ready = selector.select(_IDLE_SECONDS if idle else None)
            if not ready or self._imports.seen(self._later):
                self._import_later()
            for key, _ in ready:
                if key.fileobj is self._control:
                    self._request()
                else:
                    with contextlib.suppress(BlockingIOError):
                        self._wake_read.recv(4096)
            self._reap()

    def _import_later(self) -> None:
        with contextlib.suppress(Exception):  # a step that needs it will say what is wrong with it
            importlib.import_module(self._later.pop(0))
        gc.collect()
        gc.freeze()

    def _request(self) -> None:
        self._served = True
        token, descriptors, _, _ = socket.recv_fds(self._control, LARGEST_TOKEN, 3)
        if not token:
            self._end()
        frames, output, file = descriptors
        with os.fdopen(file, "rb") as request:
            request.seek(0)
            body = json.load(request)
        self._start(token.decode(), body, frames, output)
        os.close(frames)
        os.close(output)

    def _start(self, token: str, body: dict[str, Any], frames: int, output: int) -> None:
        limits = from_plain(Limits, body["limits"])
        sandbox = None
        try:
            if self._sandboxes is not None:
                sandbox = self._sandboxes.take(limits, Path(body["folder"]))
                sandbox.hold_children()
            pid = os.fork()
        except OSError as error:
            if sandbox is not None:
                sandbox.end()
            why = host_error(f"The step {body['name']} got no process of its own on the host", error)
            os.write(frames, sealer(bytes.fromhex(body["key"]))({"type": "error", "error": to_plain(why)}))
            _send(self._control, {"ended": token, "status": 1})
            return
        if pid == 0:
            signal.set_wakeup_fd(-1)
            sys.meta_path.insert(0, self._imports)
            run_step(
                body["name"],
                body["params"],
                folder=Path(body["folder"]),
                source=from_plain(JobFiles, body["source"]),
                limits=limits,
                frames=frames,
                output=output,
                key=bytes.fromhex(body.pop("key")),
                background=body["background"],
                needs=from_plain(Confinement, body["needs"]),
                plan=self._plan,
                sandbox=sandbox,
            )
        self._children[pid] = token, sandbox
        _send(self._control, {"started": token, "pid": pid})

    def _reap(self) -> None:
        ended = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if self._sandboxes is not None and pid == self._sandboxes.launcher:
                self._end()  # every sandbox ended with it; the next request starts all of this anew
            if pid not in self._children:
                ended = True  # an adopted one; what it had started may be adopted by now
                continue
            token, sandbox = self._children.pop(pid)
            why = ""
            if sandbox is not None and self._sandboxes is not None:
                sandbox.end()
                why = _WHY.get(self._sandboxes.end_of(sandbox), "")
            else:
                ended = True
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
            _send(self._control, {"ended": token, "status": os.waitstatus_to_exitcode(status), "why": why})
        if ended:
            self._sweep()

    def _sweep(self) -> None:
        """End adopted processes, which steps left behind outside their own process group."""
        listing = Path(f"/proc/self/task/{os.getpid()}/children")
        with contextlib.suppress(OSError, ValueError):
            for pid in map(int, listing.read_text().split()):
                if pid not in self._children and (self._sandboxes is None or pid != self._sandboxes.launcher):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)

    def _end(self) -> NoReturn:
        for pid in self._children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        self._sweep()
        os._exit(0)
