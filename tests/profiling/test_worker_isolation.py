"""What user code can do to the worker: nothing. Each case is one job on a real worker process."""

import asyncio
import contextlib
import os
import tempfile
import time
from pathlib import Path

import pytest

from accelopt_profiling.hosts.host import HostUnreachable, JobFailed
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.jobs import Job, Limits, Source, Step


def job(text: str, seconds: float = 20.0, background: bool = False, **limits: int) -> Job:
    source = Source("k.py", {"k.py": text}, name="k.py")
    return Job(source, [Step("load", "numpy", limits=Limits(seconds=seconds, **limits))], background)


@pytest.fixture
async def host():
    local = LocalHost()
    yield local
    await local.close()


async def answer(host: LocalHost, work: Job):
    async with contextlib.aclosing(host.run(work)) as messages:
        return [message async for message in messages][-1].value


async def test_a_good_file_is_loaded(host):
    assert "x" in (await answer(host, job("x = 1")))["names"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import os\nos.kill(os.getpid(), 11)", "crashed"),
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
    with pytest.raises(JobFailed) as failed:
        await answer(host, job(text, memory_bytes=1 << 30))
    assert failed.value.error.code == code
    assert "x" in (await answer(host, job("x = 1")))["names"]


async def test_an_error_names_the_line(host):
    with pytest.raises(JobFailed) as failed:
        await answer(host, job("x = 1\n\ny = x / 0\n"))
    assert (failed.value.error.file, failed.value.error.line) == ("k.py", 3)
    assert "ZeroDivisionError" in failed.value.error.message


async def test_an_endless_file_is_ended(host):
    with pytest.raises(JobFailed) as failed:
        await answer(host, job("while True: pass", seconds=0.5))
    assert failed.value.error.code == "timeout"


async def test_closing_the_iterator_kills_the_job(host, tmp_path):
    mark = tmp_path / "pid"
    text = f"import os, time\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)"
    task = asyncio.create_task(answer(host, job(text)))
    pid = int(await _appears(mark))
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await _gone(pid)


async def test_a_daemon_left_behind_is_ended(host, tmp_path):
    mark = tmp_path / "pid"
    text = (
        "import os, time\n"
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        f"        open({str(mark)!r}, 'w').write(str(os.getpid()))\n        time.sleep(60)\n    os._exit(0)\n"
        f"while not os.path.exists({str(mark)!r}) or not open({str(mark)!r}).read(): time.sleep(0.01)\n"
    )
    await answer(host, job(text))
    await _gone(int(mark.read_text()))


async def test_secrets_of_the_environment_are_not_seen(host, monkeypatch):
    await host.close()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with pytest.raises(JobFailed) as failed:
        await answer(host, job("import os\nraise ValueError(sorted(os.environ))"))
    assert "OPENAI_API_KEY" not in failed.value.error.message
    assert "HOME" in failed.value.error.message


async def test_a_worker_that_was_killed_is_started_again(host):
    await answer(host, job("x = 1"))
    task = asyncio.create_task(answer(host, job("import time\ntime.sleep(60)")))
    await asyncio.sleep(0.3)
    host._connection._process.kill()
    with pytest.raises(HostUnreachable):
        await task
    assert "x" in (await answer(host, job("x = 1")))["names"]


async def test_files_are_removed(host):
    await answer(host, job("x = 1"))
    pid = host._connection._process.pid
    folders = list(Path(tempfile.gettempdir()).glob(f"accelopt-{pid}-*"))
    assert folders
    await host.close()
    assert not [f for f in folders if f.exists()]


async def test_a_new_worker_removes_what_a_killed_one_left(host):
    await answer(host, job("x = 1"))
    process = host._connection._process
    process.kill()
    await process.wait()
    left = list(Path(tempfile.gettempdir()).glob(f"accelopt-{process.pid}-*"))
    assert left
    await answer(host, job("x = 1"))
    assert not [f for f in left if f.exists()]


async def test_background_jobs_wait_for_a_core_and_all_get_answers(host):
    answers = await asyncio.gather(*(answer(host, job(f"x{i} = 1", background=True)) for i in range(8)))
    assert all(f"x{i}" in a["names"] for i, a in enumerate(answers))


async def _appears(path: Path) -> str:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if path.exists() and (text := path.read_text()):
            return text
        await asyncio.sleep(0.01)
    raise AssertionError(f"{path} did not appear")


async def _gone(pid: int) -> None:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"process {pid} is still there")
