"""A machine over SSH: the same worker, sent as one archive over the system's ``ssh`` and run with that host's Python.

The system's client is used so that ``~/.ssh/config``, agents, jump hosts, certificates and known hosts just work.
Nothing is installed on the host and nothing of this machine's environment travels.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from accelopt_profiling.hosts.archive import bootstrap_line, preamble
from accelopt_profiling.hosts.worker_connection import WorkerConnection
from accelopt_profiling.hosts.worker_host import WorkerHost

#: The last row: what a person's configuration may ask for interactive sessions would fail a worker's (a command of
#: its own, a forwarded port that is taken) or lend the host what nothing here needs (the agent).
_OPTIONS = (
    "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10",
    "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
    "-o", "RemoteCommand=none", "-o", "ClearAllForwardings=yes", "-o", "ForwardAgent=no", "-o", "ForwardX11=no",
)  # fmt: skip

#: Parts of messages of ssh or a shell, and advice for each.
_ADVICE = (
    ("host key verification failed", "Connect once with `ssh {0}` and check the key it shows."),
    ("remote host identification has changed", "Check why the host's key changed before you trust it again."),
    ("permission denied", "Check that `ssh {0}` logs in without asking for a password."),
    ("could not resolve", "Check the host's name in the settings."),
    ("connection refused", "Check that its ssh server runs and the port is right."),
    ("timed out", "Check that the host is up and reachable."),
    ("not found", "Name its Python with `python` in [hosts.{1}]."),
    ("no such file", "Name its Python with `python` in [hosts.{1}]."),
)


class SshHost(WorkerHost):
    """Runs jobs on ``destination`` (what one would type after ``ssh``).

    ``patience`` is how many seconds a worker may take for its first words: a slow link carries the archive before.

    Raises:
        ValueError: the destination looks like an option.
    """

    remote = True

    def __init__(
        self,
        name: str,
        destination: str,
        python: str = "python3",
        options: Sequence[str] = (),
        ssh: str = "ssh",
        patience: float = 60.0,
        first_pause: float = 2.0,
    ) -> None:
        if not destination or destination.startswith("-"):
            raise ValueError(f"hosts.{name}.ssh must name a machine, not {destination!r}")
        super().__init__(name, first_pause)
        self._destination, self._patience = destination, patience
        remote = f"exec {python} -c {shlex.quote(bootstrap_line())}"
        self._command = [ssh, *_OPTIONS, *options, "--", destination, remote]

    def _new_connection(self) -> WorkerConnection:
        return WorkerConnection(self.name, self._command, preamble(), self._patience)

    def _with_advice(self, message: str) -> str:
        low = message.lower()
        for sign, advice in _ADVICE:
            if sign in low:
                return f"{message} {advice.format(self._destination, self.name)}"
        return message
