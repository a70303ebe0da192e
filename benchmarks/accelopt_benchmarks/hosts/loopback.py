"""Starts an sshd on the loopback with fresh keys, to measure the cost of a host over SSH."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path

from accelopt_profiling.hosts.ssh import SshHost


class ServerMissingError(Exception):
    """OpenSSH's server is not installed, or did not start; the message says which."""


@contextmanager
def loopback_host(folder: Path) -> Iterator[SshHost]:
    """This machine as a host over SSH while the block runs. Raises ServerMissingError."""
    server = shutil.which("sshd") or "/usr/sbin/sshd"
    if not os.access(server, os.X_OK) or shutil.which("ssh") is None:
        raise ServerMissingError("OpenSSH's server and client are needed for this: install them.")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for name in ("host_key", "user_key"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True)
    kind, key = (folder / "host_key.pub").read_text().split()[:2]
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {kind} {key}\n")
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {folder}/host_key\nPidFile {folder}/pid\n"
        f"AuthorizedKeysFile {folder}/user_key.pub\nStrictModes no\nPasswordAuthentication no\nUsePAM no\n"
    )
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)
    log = folder / "log"
    with log.open("wb") as said:
        process = subprocess.Popen([server, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=said)
    try:
        _await(port, process, log)
        options = [
            "-F",
            "/dev/null",
            "-p",
            str(port),
            "-i",
            str(folder / "user_key"),
            "-o",
            "IdentitiesOnly=yes",
        ]
        options += ["-o", f"UserKnownHostsFile={folder}/known_hosts"]
        yield SshHost("loopback", f"{getuser()}@127.0.0.1", sys.executable, options)
    finally:
        process.terminate()
        process.wait()


def _await(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 20
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise ServerMissingError(f"sshd did not start: {log.read_text(errors='replace').strip()[-300:]}")
