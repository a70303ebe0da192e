"""This machine as a host: the same worker program, as a child process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import accelopt_profiling
from accelopt_profiling.hosts.archive import NO_PLACE_TO_START_IN
from accelopt_profiling.hosts.worker_connection import WorkerConnection
from accelopt_profiling.hosts.worker_host import WorkerHost
from accelopt_profiling.worker.environment import INTERPRETER, given_variables, worker_environment


def program(module: str) -> str:
    """Return Python text that runs ``main`` of a module of this package, whatever folder it is started in."""
    package = Path(accelopt_profiling.__file__).parent.parent
    too_old = "sys.exit('it is Python %d.%d; the worker needs 3.10 or newer' % sys.version_info[:2])"
    path = f"{NO_PLACE_TO_START_IN}; sys.path.insert(0, {str(package)!r})"
    return f"{path}; sys.version_info >= (3, 10) or {too_old}; from {module} import main; main()"


class LocalHost(WorkerHost):
    """Runs jobs in a worker on this machine.

    ``python`` is the interpreter whose packages (torch, triton, the user's own) kernels see; this one by default.
    ``origin`` says in words where its name comes from. ``environment`` stands for this process's own; the worker gets
    what ``worker_environment`` keeps of it, and with its steps the ``variables`` besides.
    """

    remote = False

    def __init__(
        self,
        python: str | None = None,
        environment: dict[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        origin: str = "",
    ) -> None:
        super().__init__("local", first_pause=None)
        self._command = [python or sys.executable, "-c", program("accelopt_profiling.worker.__main__")]
        self._environment = environment
        self._python = f"{python or sys.executable}{f' ({origin})' if origin else ''}"
        self._own = {INTERPRETER: self._python, **given_variables(variables or {})}

    def _new_connection(self) -> WorkerConnection:
        environment = worker_environment(os.environ if self._environment is None else self._environment)
        return WorkerConnection(self.name, self._command, environment=environment | self._own, beside=True)

    def _with_advice(self, message: str) -> str:
        if any(sign in message for sign in ("could not be started", "No module named", "worker needs")):
            advice = "Name a Python 3.10 or newer that has NumPy with the setting `python`."
            return f"{message.rstrip('.')}. The Python is {self._python}. {advice}"
        return message
