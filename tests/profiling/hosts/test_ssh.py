"""The worker over a real sshd on the loopback: the good case, and each way in which a host cannot be reached."""

import asyncio
import contextlib
import re
import shutil
import socket
import sys
from pathlib import Path

import pytest
from support.loopback_sshd import Sshd
from support.processes import descendants
from support.waiting import until
from support.worker_jobs import answer, job

from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.archive import BOOTSTRAP, preamble
from accelopt_profiling.hosts.host import HostUnreachableError, JobFailedError
from accelopt_profiling.hosts.ssh import SshHost
from accelopt_profiling.hosts.worker_connection import WorkerConnection
from accelopt_profiling.profiler import ProfileRequest, profile

#: ``make test`` runs on a machine without an SSH server; ``make test-all`` installs one.
pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def host(sshd):
    box = sshd.host()
    yield box
    await box.close()


def archives(sshd: Sshd) -> list[Path]:
    """The folders in which the archives of this server's workers lie."""
    pids = descendants(sshd.process.pid)
    return [f for f in Path("/tmp").glob("accelopt-worker-*") if int(f.name.split("-")[2]) in pids]


async def test_a_job_runs_over_ssh_and_leaves_nothing_behind(host, sshd):
    assert (await host.facts()).python
    assert "x" in (await answer(host, job("x = 1")))["names"]
    folders = archives(sshd)
    assert len(folders) == 1
    await host.close()
    await until(lambda: not folders[0].exists())


@pytest.mark.parametrize("name", ["nki_silu.py", "triton_softmax.py"])
async def test_a_kernel_is_profiled_there(host, name, tmp_path):
    examples, example = Path(__file__).parents[3] / "examples", tmp_path / name
    for file in examples.glob(f"{example.stem}*.py"):
        (tmp_path / file.name).write_text(file.read_text().replace("m=4096, n=7168", "m=256, n=1024"))
    targets = {"nki": "trn2", "triton": "h100"}
    request = ProfileRequest(examine(example, example.read_text()), targets)
    async with contextlib.aclosing(profile(host, request)) as growing:
        measured = [measurement async for measurement in growing][-1]
    assert [(k.host, k.correctness.status) for k in measured.kernels] == [("box", "passed")]
    assert not [f for f in measured.findings if f.severity == "error"]


async def test_user_code_fails_there_as_here(host):
    with pytest.raises(JobFailedError) as failed:
        await answer(host, job("import os\nos.kill(os.getpid(), 11)"))
    assert failed.value.error.code == "crashed"


async def test_nothing_of_this_environment_travels(host, monkeypatch):
    monkeypatch.setenv("ACCELOPT_CANARY", "here")
    with pytest.raises(JobFailedError) as failed:
        await answer(host, job("import os\nraise ValueError(sorted(os.environ))"))
    assert "CANARY" not in failed.value.error.message


async def test_variables_of_the_login_are_not_seen(sshd):
    host = sshd.host(python=f"env OPENAI_API_KEY=sk-secret LOGIN_CANARY=here {sys.executable}")
    text = "raise ValueError(open('/proc/self/environ', 'rb').read())"
    try:
        with pytest.raises(JobFailedError) as failed:
            await answer(host, job(text))
        assert "HOME=" in failed.value.error.message
        assert not re.search("OPENAI|CANARY", failed.value.error.message)
    finally:
        await host.close()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"key": "wrong_key"}, "logs in without asking"),
        ({"hosts_file": "nobody_known"}, "Connect once with"),
        ({"python": "python-that-is-not-there"}, "Name its Python"),
        ({"python": "false #"}, "closed the connection"),
        ({"ssh": "no-such-ssh-client"}, "could not be started"),
    ],
)
async def test_what_is_wrong_is_said_with_what_to_do(sshd, more, message):
    box = sshd.host(**more)
    with pytest.raises(HostUnreachableError, match=message):
        await box.facts()
    with pytest.raises(HostUnreachableError, match="next try in"):
        await box.facts()
    await box.close()


async def test_a_python_too_old_says_so(sshd, tmp_path):
    old = tmp_path / "python-old"
    lines = ["#!/bin/sh", f'exec {shutil.which("python3")} -c "import sys; sys.version_info = (3, 8); $2"']
    old.write_text("\n".join(lines))
    old.chmod(0o755)
    box = sshd.host(python=str(old))
    with pytest.raises(HostUnreachableError, match=r"3\.8; the worker needs 3\.10"):
        await box.facts()
    await box.close()


async def test_a_python_too_old_is_heard_though_it_reads_nothing_of_what_is_sent():
    command = [sys.executable, "-c", f"import sys\nsys.version_info = (2, 7)\n{BOOTSTRAP}"]
    connection = WorkerConnection("old", command, preamble())
    with pytest.raises(HostUnreachableError, match=r"old: its python3 is 2\.7; the worker needs 3\.10"):
        await connection.start()


async def test_a_chatty_shell_profile_is_skipped(sshd, tmp_path):
    chatty = tmp_path / "chatty"
    chatty.write_text(f"#!/bin/sh\necho Welcome; echo '@accelopt/1 x'\nexec {sys.executable} \"$@\"\n")
    chatty.chmod(0o755)
    box = sshd.host(python=str(chatty))
    assert "x" in (await answer(box, job("x = 1")))["names"]
    await box.close()


async def test_a_connection_cut_in_mid_job_is_reported_and_the_next_job_reconnects(host, sshd):
    await answer(host, job("x = 1"))
    folders = archives(sshd)
    task = asyncio.create_task(answer(host, job("import time\ntime.sleep(60)")))
    while not any(worker.jobs for worker in (await host.activity()).workers):
        pass  # each question is a wait
    host._connection._process.kill()
    with pytest.raises(HostUnreachableError, match="lost"):
        await task
    assert "x" in (await answer(host, job("x = 1")))["names"]
    folders += archives(sshd)
    await host.close()
    await until(lambda: not [folder for folder in folders if folder.exists()])


async def test_what_a_configuration_asks_for_in_interactive_sessions_does_not_matter(sshd, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = tmp_path / "config"
        config.write_text(
            "RemoteCommand tmux attach\nRequestTTY force\nForwardAgent yes\nForwardX11 yes\n"
            f"LocalForward 127.0.0.1:{listener.getsockname()[1]} 127.0.0.1:1\nExitOnForwardFailure yes\n"
        )
        box = sshd.host(config=str(config))
        try:
            assert "x" in (await answer(box, job("x = 1")))["names"]
        finally:
            await box.close()


def test_the_command_is_one_line_that_any_shell_takes():
    command = SshHost("box", "me@box")._command[-1]
    assert "\n" not in command
    assert command.count("'") == 2


async def test_a_port_where_nobody_listens(sshd):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    box = SshHost("box", "root@127.0.0.1", options=["-F", "/dev/null", "-p", str(port)])
    with pytest.raises(HostUnreachableError, match="ssh server runs"):
        await box.facts()


def test_a_destination_cannot_be_an_option():
    with pytest.raises(ValueError, match="must name a machine"):
        SshHost("box", "-oProxyCommand=touch /tmp/owned")
