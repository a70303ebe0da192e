"""User code cannot harm the worker or its host. Each case is one job on a real worker process."""

import asyncio
import contextlib
import os
import re
import sys
import tempfile
from pathlib import Path

import pytest
import pytest_asyncio
from support.processes import is_running
from support.waiting import until
from support.worker_jobs import answer, job, local_host

from accelopt_profiling.hosts.host import HostUnreachableError, JobFailedError
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.hosts.retrying_host import RetryingHost
from accelopt_profiling.worker.job_folders import pid_namespace, remove_stale_folders

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared():
    async with local_host() as local:
        yield local


@pytest.fixture
def host(shared):
    return shared


async def test_a_good_file_is_loaded(host):
    assert "x" in (await answer(host, job("x = 1")))["names"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import os\nos.kill(os.getpid(), 11)", "crashed"),
        ("import os\nos.kill(os.getpid(), 9)", "memory"),  # as the system does it
        ("import os\nos._exit(3)", "exited"),
        ("import sys\nsys.exit(3)", "exited"),
        ("raise ValueError('no')", "user-error"),
        ("import nowhere_to_be_found", "missing-package"),
        ("def f(:\n", "user-error"),
        ("print('x' * (1 << 22))\nwhile True: pass", "too-much-output"),
        ("b = bytearray(8 << 30)", "memory"),
        ("import ctypes\nctypes.string_at(0)", "crashed"),
    ],
)
async def test_a_bad_file_gets_its_answer_and_the_next_job_runs(host, text, code):
    with pytest.raises(JobFailedError) as failed:
        await answer(host, job(text, memory_bytes=1 << 30))
    assert failed.value.error.code == code
    assert "x" in (await answer(host, job("x = 1")))["names"]


async def test_an_error_names_the_line(host):
    with pytest.raises(JobFailedError) as failed:
        await answer(host, job("x = 1\n\ny = x / 0\n"))
    assert (failed.value.error.file, failed.value.error.line) == ("k.py", 3)
    assert "ZeroDivisionError" in failed.value.error.message


async def test_an_endless_file_is_ended(host):
    with pytest.raises(JobFailedError) as failed:
        await answer(host, job("while True: pass", seconds=0.5))
    assert failed.value.error.code == "timeout"


async def test_closing_the_iterator_kills_the_job(host):
    task = asyncio.create_task(answer(host, job(SLEEPS)))
    await running(host)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await gone(host)


#: Each leaves a process behind that belongs neither to the step's process group nor to its session.
STRAYS = {
    "forked twice": "import os, time\nif os.fork() == 0:\n    if os.fork() == 0: time.sleep(60)\n    os._exit(0)\n",
    "own session": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(60)\n"
        "    os._exit(0)\n"
    ),
    "deaf": (
        "import os, signal, time\nif os.fork() == 0:\n    os.setsid()\n"
        "    for n in range(1, 32):\n        if n not in (9, 19): signal.signal(n, signal.SIG_IGN)\n"
        "    time.sleep(60)\n"
    ),
    "keeps forking": (
        "import os, time\nif os.fork() == 0:\n    for i in range(100000):\n        if os.fork(): os._exit(0)\n"
        "        os.setsid()\n        time.sleep(0.001)\n"
    ),
    "another program": (
        "import subprocess\nsubprocess.Popen(['sleep', '60'], start_new_session=True, stdout=-3, stderr=-3)\n"
    ),
}


@pytest.mark.parametrize("text", STRAYS.values(), ids=STRAYS)
async def test_what_a_job_leaves_behind_is_gone_with_its_answer(host, text):
    await answer(host, job(text))
    await gone(host)
    assert "x" in (await answer(host, job("x = 1")))["names"]


@pytest.mark.slow
async def test_without_namespaces_too_it_is_gone_and_the_worker_says_so(monkeypatch):
    monkeypatch.setenv("ACCELOPT_NAMESPACES", "0")
    async with local_host() as host:
        isolation = (await host.facts()).isolation
        assert not isolation.processes
        assert "ACCELOPT_NAMESPACES=0 is set: steps see this machine's processes" in isolation.note
        for text in STRAYS.values():  # one that never rests is caught by a PID namespace only
            await answer(host, job(text.replace("100000", "100")))
            await gone(host)
        assert "x" in (await answer(host, job("x = 1")))["names"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forbidden", "processes", "watched", "note"),
    [
        ("max_user_namespaces", True, True, ""),  # the worker is root there, and can do without
        (
            "max_pid_namespaces",
            False,
            False,
            "steps see this machine's processes, memory is bounded for each process",
        ),
        ("max_net_namespaces", True, True, ""),
        ("max_mnt_namespaces", True, False, "memory is bounded for each process"),
    ],
)
async def test_where_the_kernel_forbids_some_the_rest_is_used_and_the_note_says_so(
    tmp_path, forbidden, processes, watched, note
):
    """A filter and Landlock keep files and network then. Root without another user stays root, and says so."""
    inside = tmp_path / "inside"
    inside.write_text(f'#!/bin/sh\necho 0 > /proc/sys/user/{forbidden} && exec {sys.executable} "$@"\n')
    outside = tmp_path / "python"
    outside.write_text(f'#!/bin/sh\nexec unshare --map-root-user {inside} "$@"\n')
    for path in (inside, outside):
        path.chmod(0o755)
    async with local_host(str(outside)) as host:
        isolation = (await host.facts()).isolation
        assert (isolation.processes, isolation.watched) == (processes, watched)
        assert isolation.network
        assert isolation.calls
        assert isolation.files
        assert note in isolation.note
        assert "steps run as root" in isolation.note
        with pytest.raises(JobFailedError, match=r"unreachable|Permission denied"):
            await answer(host, job("import socket\nsocket.create_connection(('192.0.2.1', 80), 5)"))
        with pytest.raises(JobFailedError, match=r"No such file|Permission denied"):
            await answer(host, job(f"open({str(inside)!r})"))
        assert "x" in (await answer(host, job("open('file', 'w').write('here')\nx = 1")))["names"]
        await answer(host, job(STRAYS["own session"]))
        await gone(host)


async def test_a_killed_worker_takes_its_jobs_and_their_strays_with_it(host):
    text = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(61)\n" + SLEEPS
    task = asyncio.create_task(answer(host, job(text)))
    pids = await running(host, least=2)
    host._connection._process.kill()
    with pytest.raises(HostUnreachableError):
        await task
    await until(lambda: not any(map(is_running, pids)))


ENVIRONMENT = """
import os
with open("/proc/self/environ", "rb") as variables:
    started_with = variables.read().split(b"\\0")
raise ValueError(sorted({*os.environ, *(variable.partition(b"=")[0].decode() for variable in started_with)}))
"""


async def test_secrets_of_the_environment_are_not_seen(host, monkeypatch):
    await host.close()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("MY_MODEL", "sk-secret")
    monkeypatch.setenv("PYTHON_LICENSE_TOKEN", "secret")
    with pytest.raises(JobFailedError) as failed:
        await answer(host, job(ENVIRONMENT))
    assert not re.search("OPENAI|MY_MODEL|TOKEN", failed.value.error.message)
    assert "HOME" in failed.value.error.message


@pytest.mark.slow
async def test_a_worker_that_was_started_with_secrets_starts_again_without(monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nOPENAI_API_KEY=sk-secret exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    async with local_host(str(python)) as host:
        with pytest.raises(JobFailedError) as failed:
            await answer(host, job(ENVIRONMENT))
        assert "OPENAI" not in failed.value.error.message
        assert "HOME" in failed.value.error.message


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["no user namespaces", "no mounts either"])
async def test_root_in_a_chroot_gets_a_sandbox_without_user_namespaces(tmp_path, missing):
    """The kernel refuses user namespaces inside a chroot; a folder that is no mount cannot hide anything."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "marker").touch()
    marker = Path("/marker")
    inside = tmp_path / "inside"
    if missing == "no user namespaces":
        inside.write_text(f'#!/bin/sh\nmount --rbind / {root} && exec chroot {root} {sys.executable} "$@"\n')
    else:
        inside.write_text(
            f"#!/bin/sh\nfor place in /*; do [ -d $place ] || continue; mkdir -p {root}$place; "
            f"mount --rbind $place {root}$place || exit; done; ln -sfn usr/lib64 {root}/lib64\n"
            f'exec chroot {root} {sys.executable} "$@"\n'
        )
    outside = tmp_path / "python"
    outside.write_text(f'#!/bin/sh\nexec unshare --map-root-user --mount {inside} "$@"\n')
    for path in (inside, outside):
        path.chmod(0o755)
    async with local_host(str(outside)) as host:
        isolation = (await host.facts()).isolation
        assert (isolation.processes, isolation.network) == (True, True)
        assert isolation.files
        assert isolation.watched == (missing == "no user namespaces")
        assert ("memory is bounded for each" in isolation.note) != isolation.watched
        await verify_sandbox(host)
        assert "x" in (await answer(host, job("x = 1")))["names"]
        refused = "Read-only file system" if isolation.watched else "Permission denied"
        with pytest.raises(JobFailedError, match=refused):
            await answer(host, job("open('/tmp/accelopt-stray', 'w')"))
        with pytest.raises(JobFailedError, match=r"No such file|Permission denied"):
            await answer(host, job(f"open({str(marker)!r})"))


@pytest.mark.slow
async def test_a_step_without_a_sandbox_has_no_privileges(monkeypatch):
    monkeypatch.setenv("ACCELOPT_NAMESPACES", "0")
    async with local_host() as host:
        text = (
            "for line in open('/proc/self/status'):\n    if line.startswith('CapEff'): raise ValueError(line)"
        )
        with pytest.raises(JobFailedError) as failed:
            await answer(host, job(text))
        assert int(failed.value.error.message.split()[-1], 16) == 0


async def test_a_worker_that_was_killed_is_started_again(host):
    task = asyncio.create_task(answer(host, job(SLEEPS)))
    await running(host)
    host._connection._process.kill()
    with pytest.raises(HostUnreachableError):
        await task
    assert "x" in (await answer(host, job("x = 1")))["names"]


async def test_an_interrupted_job_is_run_again_and_answers_once(host, tmp_path):
    killed = tmp_path / "killed"
    text = f"import os, time\nwhile not os.path.exists({str(killed)!r}): time.sleep(0.01)\nx = 1"

    async def messages():
        return [message async for message in RetryingHost(host).run(job(text, imports=(str(tmp_path),)))]

    task = asyncio.create_task(messages())
    await running(host)
    os.kill(host.process, 9)
    killed.touch()
    assert [(m.final, m.attempt, "x" in m.value["names"]) for m in await task] == [(True, 2, True)]


async def test_files_are_removed(host):
    await answer(host, job("x = 1"))
    pid = host._connection._process.pid
    folders = list(Path(tempfile.gettempdir()).glob(f"accelopt-{pid}-*"))
    assert folders
    await host.close()
    assert not [f for f in folders if f.exists()]


async def test_a_killed_worker_leaves_no_files(host):
    await answer(host, job("x = 1"))
    task = asyncio.create_task(answer(host, job("open('file', 'w').write('x')\n" + SLEEPS)))
    await running(host)
    files = list(Path(tempfile.gettempdir()).glob(f"accelopt-{host.process}-*"))
    assert files
    os.kill(host.process, 9)
    with pytest.raises(HostUnreachableError):
        await task
    await until(lambda: not [f for f in files if f.exists()])


async def test_what_is_left_of_workers_that_are_gone_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = await asyncio.create_subprocess_exec("true")
    await ended.wait()
    for name in (
        f"accelopt-{ended.pid}-a",
        f"accelopt-worker-{ended.pid}-b",
        f"accelopt-{ended.pid}-{pid_namespace()}-e",
        f"accelopt-{ended.pid}-{pid_namespace() + 1}-f",
        f"accelopt-{os.getpid()}-c",
        "accelopt-x-d",
    ):
        (tmp_path / name).mkdir()
    remove_stale_folders()
    names = {f"accelopt-{os.getpid()}-c", "accelopt-x-d", f"accelopt-{ended.pid}-{pid_namespace() + 1}-f"}
    assert {f.name for f in tmp_path.iterdir()} == names


@pytest.mark.slow
async def test_background_jobs_wait_for_a_core_and_all_get_answers(host):
    answers = await asyncio.gather(*(answer(host, job(f"x{i} = 1", background=True)) for i in range(8)))
    assert all(f"x{i}" in a["names"] for i, a in enumerate(answers))


async def verify_sandbox(host: LocalHost) -> None:
    """Fail in one line unless a step runs in a PID namespace of its own, whose first process is its launcher's.

    To be called before any job that would end or read processes outside its sandbox, were there none.
    """
    text = "import os\nraise ValueError(os.getpid(), os.getppid(), os.stat('/proc/self/ns/pid').st_ino)"
    isolation = (await host.facts()).isolation
    with pytest.raises(JobFailedError) as failed:
        await answer(host, job(text))
    own, parent, space = map(int, re.findall(r"\d+", failed.value.error.message))
    if not isolation.processes or own > 100 or parent != 0 or space == os.stat("/proc/self/ns/pid").st_ino:
        why = isolation.note or f"a step has the process number {own} and the parent {parent}"
        pytest.fail(f"hostile jobs are not run, because this machine has no sandbox: {why}", pytrace=False)


@pytest_asyncio.fixture(loop_scope="module")
async def sandboxed(host):
    await verify_sandbox(host)
    return host


WROTE = "wrote more than 16 MiB to files"
WRITES = """
import os, time
def write(i):
    with open(str(i % 8), "wb") as file:
        file.write(bytes(1 << 20))
"""
HOSTILE = {
    "kill everything": ("import os\nos.kill(-1, 9)", "ProcessLookupError"),
    "kill the first process": (
        "import os, time\nos.kill(1, 9)\ntime.sleep(0.2)\nraise ValueError('alive')",
        "alive|not permitted",
    ),
    "look for processes": (
        "import os\nraise ValueError(len([n for n in os.listdir('/proc') if n.isdigit()]))",
        "ValueError: 2$",
    ),
    "see who started it": ("import os\nraise ValueError(os.getppid())", "ValueError: 0"),
    "use the network": (
        "import socket\nsocket.create_connection(('192.0.2.1', 80), 5)",
        "Network is unreachable",
    ),
    "resolve a name": ("import socket\nsocket.getaddrinfo('example.com', 80)", "gaierror"),
    "use a network of its own": (
        "import socket\ns = socket.create_server(('127.0.0.1', 0))\nraise ValueError('up')",
        "up",
    ),
    "write elsewhere": ("open('/tmp/accelopt-stray', 'w')", "Read-only file system"),
    "remount": (
        "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\n"
        "raise ValueError(c.mount(b'none', b'/', None, 32 | 4096, None), ctypes.get_errno())",
        r"\(-1, 1\)",
    ),
    "see other jobs": (
        "import glob, os\nraise ValueError(len(glob.glob('/tmp/accelopt-[0-9]*-*/job-*')) == 1)",
        "ValueError: True",
    ),
    "read the environment of others": (
        "import glob\nraise ValueError(sorted(glob.glob('/proc/*/environ'))[0])",
        "/proc/1/environ",
    ),
    "exceed its memory by many": (
        "import os, time\nfor i in range(4):\n    if os.fork() == 0:\n        b = bytearray(200 << 20)\n"
        "        time.sleep(60)\ntime.sleep(60)",
        "all its processes together",
    ),
    "start too many processes": (
        "import os, time\nwhile True:\n    if os.fork() == 0: time.sleep(60)",
        "more than 40 processes|temporarily unavailable",
    ),
    "write too large a file": ("open('big', 'wb').write(bytes(2 << 20))", "File too large|SIGXFSZ"),
    "write too much in many files": (f"{WRITES}for i in range(40): write(i)\ntime.sleep(60)", WROTE),
    "write too much in children": (
        f"{WRITES}for i in range(40):\n    if (child := os.fork()) == 0: write(i), os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "time.sleep(60)",
        WROTE,
    ),
    "write too much in children that nobody waits for": (
        f"{WRITES}for i in range(39):\n    write(i)\n    if os.fork() == 0: os._exit(0)\ntime.sleep(60)",
        WROTE,
    ),
    "write to a file in memory": ('import os\nos.memfd_create("file")', "not implemented"),
    "change a setting of the kernel": (
        "open('/proc/sys/kernel/hostname', 'r+')",
        "Read-only file system|Permission denied",
    ),
    "be ready to reboot": (  # kernels without the first file have the second
        "import glob\nopen((glob.glob('/proc/sysrq-trigger') or ['/proc/sys/kernel/hostname'])[0], 'r+')",
        "Read-only file system|Permission denied",
    ),
    "open too many files": ("fs = [open('/dev/null') for i in range(1000)]", "Too many open files"),
}


@pytest.mark.parametrize(("text", "message"), HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_job_gets_nowhere(sandboxed, text, message):
    host = sandboxed
    limits = {
        "memory_bytes": 512 << 20,
        "processes": 40,
        "file_bytes": 1 << 20,
        "written_bytes": 16 << 20,
        "open_files": 64,
    }
    with pytest.raises(JobFailedError) as failed:
        await answer(host, job(text, **limits))
    assert re.search(message, failed.value.error.message)
    await gone(host)
    assert "x" in (await answer(host, job("x = 1")))["names"]


async def test_a_worker_says_what_it_keeps_from_a_step(host):
    isolation = (await host.facts()).isolation
    assert isolation.complete
    assert isolation.note == ""


SLEEPS = "import time\ntime.sleep(60)"


def steps_of(host: LocalHost) -> list[int]:
    """The processes of this worker's steps: those that stand in a folder of one of its jobs."""
    mark = f"/accelopt-{host._connection._process.pid}-" if host._connection else "/accelopt-none-"
    pids = []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if mark in os.readlink(place):
                pids.append(int(place.parent.name))
    return pids


async def running(host: LocalHost, least: int = 1) -> list[int]:
    await until(lambda: host._connection is not None and len(steps_of(host)) >= least)
    return steps_of(host)


async def gone(host: LocalHost) -> None:
    await until(lambda: not steps_of(host))


@pytest.mark.slow
async def test_a_host_without_a_complete_sandbox_is_told_once_and_refused_where_one_is_required(monkeypatch):
    monkeypatch.setenv("ACCELOPT_NAMESPACES", "0")
    lines = []
    for required in (False, True):
        async with local_host() as host:
            host.require_isolation, host.on_incomplete = required, lines.append
            if required:
                with pytest.raises(HostUnreachableError, match=r"NAMESPACES=0 is set.* Nothing was run"):
                    await answer(host, job("x = 1"))
            else:
                for _ in range(2):
                    assert "x" in (await answer(host, job("x = 1")))["names"]
    assert len(lines) == 1
    assert "kernels are not isolated completely: ACCELOPT_NAMESPACES=0 is set" in lines[0]
