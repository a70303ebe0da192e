"""A real sshd on the loopback for tests, and jobs to send to it."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from accelopt_profiling.hosts.ssh import SshHost
from support.processes import descendants


def program(name: str) -> str:
    """The path of a program; fails the test in one line where it is missing."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if path is None:
        pytest.fail(
            f"{name} is missing: scripts/system-tools.sh installs it (as root, Debian)", pytrace=False
        )
    return path


class Sshd:
    """An sshd of our own: fresh host key, one authorised key, a port nobody uses."""

    def __init__(self, folder: Path, more_settings: str = "") -> None:
        self.folder = folder
        self.program = program("sshd")
        program("ssh")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        for name in ("host_key", "user_key", "wrong_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        shutil.copy(folder / "user_key.pub", folder / "authorized_keys")
        host_key = (folder / "host_key.pub").read_text().split()[:2]
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {' '.join(host_key)}\n")
        (folder / "nobody_known").write_text("")
        (folder / "sshd_config").write_text(
            f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {folder}/host_key\nPidFile {folder}/pid\n"
            f"AuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\nPasswordAuthentication no\n"
            f"UsePAM no\nPermitRootLogin yes\nPrintMotd no\n{more_settings}"
        )
        os.makedirs("/run/sshd", exist_ok=True)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [self.program, "-D", "-e", "-f", self.folder / "sshd_config"]
        self.process = subprocess.Popen(command, stderr=(self.folder / "log").open("wb"))
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
        raise AssertionError((self.folder / "log").read_text())

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def reboot(self) -> None:
        """Kill the server, its sessions and every worker they started, without a goodbye."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)  # nobody logs in meanwhile
        for pid in descendants(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.stop()

    def host(
        self,
        key: str = "user_key",
        hosts_file: str = "known_hosts",
        options: Sequence[str] = (),
        config: str = os.devnull,
        **more: Any,
    ) -> SshHost:
        options = [
            *options, "-F", config, "-p", str(self.port), "-i", str(self.folder / key), "-o", "IdentitiesOnly=yes",
            "-o", f"UserKnownHostsFile={self.folder / hosts_file}", "-o", "StrictHostKeyChecking=yes",
        ]  # fmt: skip
        return SshHost("box", "root@127.0.0.1", options=options, **{"python": sys.executable, **more})
