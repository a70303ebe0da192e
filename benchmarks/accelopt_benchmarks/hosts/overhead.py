"""Measures the overhead of running a candidate on a host, over SSH against an sshd on the loopback with fresh keys,
and whether candidates survive killed workers.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path
from statistics import median

from accelopt_benchmarks.result import GoalResult
from accelopt_profiling.hosts.host import Host
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.hosts.retrying_host import RetryingHost
from accelopt_profiling.hosts.ssh import SshHost
from accelopt_profiling.jobs import Job, JobFiles, Step

#: A candidate without work of its own: what it takes is what the worker adds.
CANDIDATE = "import torch\nimport triton\nNUMBER = {number}\n"
OVERHEAD_MS, RATIO, OVER_SSH_MS = 150.0, 10.0, 60.0
_WORK_SECONDS = 0.4


def _job(text: str, name: str = "candidate.py") -> Job:
    return Job(JobFiles("candidate.py", {"candidate.py": text}, name=name), [Step("load", "torch")])


async def _seconds(host: Host, number: int) -> float:
    began = time.perf_counter()
    async with contextlib.aclosing(host.run(_job(CANDIDATE.format(number=number)))) as messages:
        async for _ in messages:
            pass
    return time.perf_counter() - began


def _fresh_seconds(number: int) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", CANDIDATE.format(number=number)], check=True)
    return time.perf_counter() - began


async def overhead(rounds: int) -> list[GoalResult]:
    """Warm, here and over SSH on the loopback, and a fresh process that imports torch: in turns, in one run."""
    local = LocalHost()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="accelopt-bench-") as folder,
            loopback_host(Path(folder)) as far,
        ):
            try:
                for host in (local, far):
                    for number in range(3):
                        await _seconds(host, number)
                here, there, fresh = [], [], []
                for number in range(rounds):
                    here.append(1e3 * await _seconds(local, number))
                    there.append(1e3 * await _seconds(far, number))
                    fresh.append(1e3 * await asyncio.to_thread(_fresh_seconds, number))
            finally:
                await far.close()
    except ServerMissingError as error:
        return [
            GoalResult(
                "overhead per candidate", f"<= {OVERHEAD_MS:g} ms", float("nan"), "ms", False, str(error)
            )
        ]
    finally:
        await local.close()
    own, more = median(here), median(b - a for a, b in zip(here, there, strict=True))
    ratio = median(f / h for f, h in zip(fresh, here, strict=True))
    how = f"median of {rounds}, {min(here):.0f} to {max(here):.0f} ms; load {os.getloadavg()[0]:.1f}"
    beside = f"a fresh process that imports torch: median {median(fresh):.0f} ms, in turns"
    return [
        GoalResult("overhead per candidate, warm, local", f"<= {OVERHEAD_MS:g} ms", own, "ms", own <= OVERHEAD_MS, how),
        GoalResult("below a fresh process", f">= {RATIO:g}x", ratio, "x", ratio >= RATIO, beside),
        GoalResult(
            "more over SSH on the loopback", f"<= {OVER_SSH_MS:g} ms", more, "ms", more <= OVER_SSH_MS,
            f"median of {rounds} differences; over SSH {median(there):.0f} ms in all",
        ),
    ]  # fmt: skip


async def killed_workers(candidates: int, every: float = 10.0) -> list[GoalResult]:
    """Run ``candidates`` jobs on two workers, one of which is killed every ``every`` seconds, in turn."""
    locals_ = [LocalHost(), LocalHost()]
    queue: asyncio.Queue[int] = asyncio.Queue()
    for number in range(candidates):
        queue.put_nowait(number)
    answers: Counter[int] = Counter()
    workers: set[int] = set()
    attempts = kills = wrong = 0

    async def serve(host: Host) -> None:
        nonlocal attempts, wrong
        while not queue.empty():
            number = queue.get_nowait()
            text = f"import time\ntime.sleep({_WORK_SECONDS})\nNUMBER_{number} = 1\n"
            async with contextlib.aclosing(host.run(_job(text, f"{number}.py"))) as messages:
                async for message in messages:
                    if message.final:
                        answers[number] += 1
                        attempts += message.attempt
                        wrong += f"NUMBER_{number}" not in message.value["names"]

    async def kill() -> None:
        nonlocal kills
        while True:
            await asyncio.sleep(every)
            process = locals_[kills % 2].process
            if process is not None:
                workers.add(process)
                os.kill(process, 9)
                kills += 1

    began = time.perf_counter()
    killing = asyncio.create_task(kill())
    try:
        await asyncio.gather(*(serve(RetryingHost(host)) for host in locals_))
    finally:
        killing.cancel()
        for host in locals_:
            if host.process is not None:
                workers.add(host.process)
            await host.close()
    seconds = time.perf_counter() - began
    once = sum(count == 1 for count in answers.values()) - wrong
    twice = sum(count > 1 for count in answers.values())
    strays, files = await asyncio.to_thread(_left_behind, workers)
    how = f"two workers, one killed every {every:g} s: {kills} kills, {attempts - candidates} runs again"
    how += f", {seconds:.0f} s in all"
    return [
        GoalResult(
            "candidates answered, each with its own answer",
            f"{candidates}",
            once,
            "",
            once == candidates,
            how,
        ),
        GoalResult("candidates answered twice", "0", twice, "", twice == 0),
        GoalResult("processes left behind", "0", strays, "", strays == 0),
        GoalResult("files left behind", "0", files, "", files == 0),
    ]


def _left_behind(workers: set[int], patience: float = 3.0) -> tuple[int, int]:
    """Processes that stand in a folder of these workers, and such folders.

    What was killed has a moment to be gone.
    """
    marks = tuple(f"/accelopt-{pid}-" for pid in workers)
    end = time.perf_counter() + patience
    while True:
        processes = 0
        for place in Path("/proc").glob("[0-9]*/cwd"):
            with contextlib.suppress(OSError):
                processes += any(mark in os.readlink(place) for mark in marks)
        folders = [
            f for f in Path(tempfile.gettempdir()).glob("accelopt-*") if f"/{f.name}".startswith(marks)
        ]
        if not (processes or folders) or time.perf_counter() > end:
            return processes, len(folders)
        time.sleep(0.05)


class ServerMissingError(Exception):
    """OpenSSH's server is not installed, or did not start. The message says which."""


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
    with log.open("wb") as output:
        process = subprocess.Popen([server, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=output)
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
