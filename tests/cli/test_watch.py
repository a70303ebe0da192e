"""A watch that follows a folder, and commands that are interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from support.nki_kernels import FASTER, SILU, WRONG
from support.processes import is_running
from support.waiting import until

from accelopt_lsp.cli.watch import Watcher, is_watched, kernel_files
from accelopt_lsp.service.local import LocalService


def endless(name: str) -> str:
    """A kernel file whose process calls itself ``name`` (of at most 15 characters) and never ends."""
    never = f"import ctypes\nctypes.CDLL(None).prctl(15, {name.encode()!r})\nwhile True:\n    pass\n"
    return SILU.replace("COLUMNS = 128\n", "COLUMNS = 128\n" + never)


async def running(name: str) -> int:
    """The id of the process that calls itself ``name``, once there is one."""

    async def wait() -> int:
        while True:
            for file in Path("/proc").glob("[0-9]*/comm"):
                with contextlib.suppress(OSError):  # it ended meanwhile
                    if file.read_text().strip() == name:
                        return int(file.parent.name)
            await asyncio.sleep(0.05)

    return await asyncio.wait_for(wait(), timeout=60)


class Followed:
    """A watcher at work, and a way to wait for what it shows."""

    def __init__(self, folder: Path) -> None:
        self.watcher = Watcher(folder, {}, None)
        self._changed = asyncio.Event()
        self.watcher.changed = self._changed.set

    async def follow(self) -> None:
        service = LocalService()
        try:
            await self.watcher.follow(service)
        finally:
            await service.close()

    async def until(self, expected: dict[str, str]) -> None:
        """Wait until the correctness shown per file name is ``expected``."""

        async def wait() -> None:
            while True:
                measurements = {Path(m.file).name: m for m in self.watcher.shown()}
                statuses = {
                    n: m.kernels[0].correctness.status
                    for n, m in measurements.items()
                    if m.complete and m.kernels
                }
                if statuses == expected and set(measurements) == set(expected):
                    return
                self._changed.clear()
                await self._changed.wait()

        await asyncio.wait_for(wait(), timeout=60)


@pytest.mark.slow
async def test_a_watch_follows_what_is_saved(home: Path) -> None:
    folder = home / "kernels"
    folder.mkdir()
    (folder / "a.py").write_text(SILU)
    followed = Followed(folder)
    watching = asyncio.create_task(followed.follow())
    try:
        await followed.until({"a.py": "passed"})
        (folder / "a.py").write_text(WRONG)
        await followed.until({"a.py": "failed"})
        (folder / ".b.py.tmp").write_text(FASTER)
        os.replace(folder / ".b.py.tmp", folder / "b.py")  # as editors and formatters save
        await followed.until({"a.py": "failed", "b.py": "passed"})
        (folder / "a.py").unlink()
        await followed.until({"b.py": "passed"})
        (folder / "b.py").write_bytes(b"\xff\xfe")
        await followed.until({})
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


@pytest.mark.slow
async def test_a_save_during_a_profile_starts_over(home: Path) -> None:
    folder = home / "kernels"
    folder.mkdir()
    name = f"watched {os.getpid()}"
    (folder / "a.py").write_text(endless(name))
    followed = Followed(folder)
    watching = asyncio.create_task(followed.follow())
    try:
        pid = await running(name)
        (folder / "a.py").write_text(SILU)
        await until(lambda: not is_running(pid), "the end of the process")
        await followed.until({"a.py": "passed"})
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


@pytest.mark.slow
async def test_an_interrupted_command_leaves_no_process(home: Path) -> None:
    name = f"stopped {os.getpid()}"
    (home / "silu.py").write_text(endless(name))
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "accelopt_lsp.cli.main", "profile", "silu.py", "--json",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    )  # fmt: skip
    pid = await running(name)
    child.send_signal(signal.SIGINT)
    out, err = await asyncio.wait_for(child.communicate(), timeout=60)
    assert child.returncode == 130, err
    assert json.loads(out)["error"]["exit"] == 130
    assert b"Traceback" not in err
    await until(lambda: not is_running(pid), "the end of the process")


@pytest.mark.parametrize("name", ["venv", "site-packages", ".tox"])
def test_a_folder_that_was_asked_for_is_watched_whatever_it_is_called(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name / "kernels"
    (folder / "venv").mkdir(parents=True)
    for path in (folder / "a.py", folder / "venv" / "b.py"):
        path.write_text(SILU)
    assert kernel_files(folder) == [folder / "a.py"]
    assert is_watched(folder, folder / "a.py")
    assert not is_watched(folder, folder / "venv" / "b.py")
    assert not is_watched(folder, tmp_path / "c.py")
