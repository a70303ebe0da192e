"""Steps that speak to the worker in its own frames, or lay traps in their folder: the worker goes on, for all jobs."""

import contextlib
import os
import pty
import re
import subprocess
import sys

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st
from support.worker_jobs import answers, job, local_host

from accelopt_profiling.hosts.host import JobFailedError
from accelopt_profiling.jobs import Job, JobFiles
from accelopt_profiling.worker.frames import LARGEST_FRAME, Decoder, encode

SENDS = """
import os
def send(data):
    for descriptor in map(int, os.listdir('/proc/self/fd')):
        if descriptor > 2:
            try:
                while data: data = data[os.write(descriptor, data):]
            except OSError: pass
def frame(body):
    send(b'@accelopt/1 %d\\n%s\\n' % (len(body), body))
"""
FORGED = {
    "a number that JSON has not": 'frame(b\'{"type": "partial", "value": NaN}\')',
    "a number beyond all": 'frame(b\'{"type": "partial", "value": 1e999}\')',
    "too deep": "frame(b'[' * 200000)",
    "deep": "frame(b'{\"type\": \"partial\", \"value\": ' + b'[' * 900 + b']' * 900 + b'}')",
    "an error of another shape": 'frame(b\'{"type": "error", "error": 5}\')\nos._exit(0)',
    "an error without itself": 'frame(b\'{"type": "error"}\')\nos._exit(0)',
    "a result without a value": 'frame(b\'{"type": "result"}\')\nos._exit(0)',
    "no type": "frame(b'{}')\nos._exit(0)",
    "a type of another type": "frame(b'{\"type\": [1]}')\nos._exit(0)",
    "too many headers too large": "send(b'@accelopt/1 999999999999\\n' * 5000)",
    "a frame without an end": "send(b'@accelopt/1 250000000\\n' + b'x' * (80 << 20))",
    "more answers than anyone wants": 'while True: frame(b\'{"type": "partial", "value": 1}\' + b\' \' * (1 << 20))',
}

shares_a_worker = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host():
    async with local_host() as local:
        yield local


@shares_a_worker
@pytest.mark.parametrize("text", FORGED.values(), ids=FORGED)
async def test_a_step_that_forges_frames_ends_no_worker(host, text):
    await host.facts()
    worker = host.process
    with contextlib.suppress(JobFailedError):
        await answers(host, job(SENDS + text))
    assert "x" in (await answers(host, job("x = 1")))[-1].value["names"]
    assert host.process == worker


@shares_a_worker
async def test_a_job_without_steps_is_refused(host):
    with pytest.raises(JobFailedError, match="no steps"):
        await answers(host, Job(JobFiles("k.py", {}), []))
    assert "x" in (await answers(host, job("x = 1")))[-1].value["names"]


@shares_a_worker
async def test_a_link_in_the_jobs_folder_leads_the_worker_nowhere(host, tmp_path):
    """The first step leaves links of every name that the worker could write for the second."""
    target = tmp_path / "precious"
    target.write_text("mine")
    text = (
        "import os\nfolder = os.path.dirname(os.environ['HOME'])\n"
        "for n in range(200):\n"
        f"    try: os.symlink({str(target)!r}, f'{{folder}}/request-{{n}}.json')\n"
        "    except FileExistsError: pass\n"
    )
    assert len(await answers(host, job(text, steps=2))) == 2
    assert target.read_text() == "mine"


def test_a_folder_that_forbids_its_own_removal_is_removed(tmp_path):
    """Not as root, whom nothing is forbidden."""
    code = (
        "import os, pathlib\nfrom accelopt_profiling.folder_tree import remove_tree\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "os.makedirs('job/a/b/c')\nopen('job/a/b/c/d', 'w').close()\nos.mkdir('kept', 0o500)\n"
        "os.symlink('../kept', 'job/link')\nos.chmod('job/a/b', 0)\nos.chmod('job/a', 0)\n"
        "remove_tree(pathlib.Path('job'))"
    )
    tmp_path.chmod(0o777)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o500


@pytest.mark.slow
@shares_a_worker
async def test_an_environment_variable_that_looks_like_a_key_is_dropped(host, monkeypatch):
    await host.close()
    monkeypatch.setenv("NVIDIA_API_KEY", "nvapi-secret")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(JobFailedError) as failed:
        await answers(host, job("import os\nraise ValueError(sorted(os.environ))"))
    assert "NVIDIA_API_KEY" not in failed.value.error.message
    assert "CUDA_VISIBLE_DEVICES" in failed.value.error.message


@pytest.mark.slow
@shares_a_worker
async def test_modules_of_the_folder_it_was_started_in_are_not_the_workers(tmp_path, monkeypatch):
    for name in ("selectors", "tempfile", "numpy", "ml_dtypes", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('this is no module of the worker')")
    monkeypatch.chdir(tmp_path)
    async with local_host() as host:
        assert "x" in (await answers(host, job("import numpy\nx = numpy.int32(1)")))[-1].value["names"]


FRAMES = [encode({"type": "partial", "value": "é\ud800"}), b"@accelopt/1 ", b"12\n", b"\n", b"{}", b"[" * 3000,
          b"@accelopt/1 2\n{}\n", b"@accelopt/1 %d\n" % (LARGEST_FRAME + 1), b"\xff"]  # fmt: skip


@given(st.lists(st.sampled_from(FRAMES) | st.binary(max_size=40), max_size=30), st.integers(1, 64))
def test_any_bytes_are_decoded_alike_however_they_arrive(parts, size):
    data = b"".join(parts)
    whole, pieces = Decoder(), Decoder()
    messages = whole.feed(data)
    assert messages == [m for at in range(0, len(data), size) for m in pieces.feed(data[at : at + size])]
    assert all(isinstance(message, dict) for message in messages)


TYPES_INTO_TERMINAL = """
import asyncio, contextlib
from accelopt_profiling.hosts.host import JobFailedError
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.jobs import Job, JobFiles, Step

async def main():
    host = LocalHost()
    try:
        async for _ in host.run(Job(JobFiles("k.py", {"k.py": "open('/dev/tty')"}), [Step("load", "numpy")])):
            print("opened")
    except JobFailedError as failed:
        print(failed)
    await host.close()

open("/dev/tty").close()
asyncio.run(main())
"""


@pytest.mark.slow
def test_a_step_has_no_terminal_to_type_into():
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", TYPES_INTO_TERMINAL])
    output = b""
    with contextlib.suppress(OSError):  # how a terminal ends whose last program has ended
        while more := os.read(terminal, 4096):
            output += more
    os.waitpid(pid, 0)
    os.close(terminal)
    assert re.search(
        rb"(No such device or address|No such file or directory|Permission denied): '/dev/tty'", output
    )
