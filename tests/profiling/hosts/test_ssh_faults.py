"""Over a real sshd: what happens to jobs when connections, hosts, disks and streams fail while they run."""

import asyncio
import logging
import os
import shutil
import sys
from pathlib import Path

import pytest
from support.loopback_sshd import Sshd
from support.processes import descendants, is_running, stat_fields
from support.seen_by_steps import seen_by_steps
from support.waiting import until
from support.worker_jobs import answer, job

from accelopt_profiling.hosts.archive import worker_archive
from accelopt_profiling.hosts.host import HostUnreachableError, JobFailedError, JobInterruptedError
from accelopt_profiling.hosts.retrying_host import RetryingHost

pytestmark = [pytest.mark.slow, pytest.mark.long]

#: Runs until a file is there: as long as it takes to cut it.
LONG = "import os, time\nwhile not os.path.exists({until!r}): time.sleep(0.02)\nx = 1\n"


@pytest.fixture
def marks_folder():
    with seen_by_steps() as folder:
        yield folder


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def box(sshd):
    host = sshd.host(first_pause=0.1)
    yield host
    await host.close()


def script(path: Path, text: str) -> str:
    """An executable shell script, as a command without spaces."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def workers(sshd: Sshd) -> list[int]:
    """Supervisors on the far side: the worker's processes whose parent is no worker."""
    pids = []
    for pid in descendants(sshd.process.pid):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            above = Path(f"/proc/{stat_fields(pid)[1]}/cmdline").read_bytes()
        except (OSError, IndexError):
            continue
        if b"worker.__main__" in command and not above.startswith(command[:20]):
            pids.append(pid)
    return pids


def steps(sshd: Sshd) -> list[int]:
    """Processes that stand in a job's folder."""
    pids = []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if "/job-" in os.readlink(place) and int(place.parent.name) in descendants(sshd.process.pid):
                pids.append(int(place.parent.name))
        except OSError:
            continue
    return pids


CUTS = {
    "the client's ssh is killed": lambda sshd, box: box._connection._process.kill(),
    "the server's session is killed": lambda sshd, box: [
        os.kill(p, 9) for p in descendants(sshd.process.pid)[:1]
    ],
    "the worker is killed": lambda sshd, box: [os.kill(p, 9) for p in workers(sshd)],
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
async def test_an_interrupted_job_is_reported_and_run_again_once(sshd, box, cut, caplog, marks_folder):
    host = RetryingHost(box)
    was_cut = marks_folder / "cut"
    task = asyncio.create_task(_all(host, job(LONG.format(until=str(was_cut)))))
    await until(lambda: steps(sshd))
    first = steps(sshd)
    with caplog.at_level(logging.WARNING):
        cut(sshd, box)
        was_cut.touch()
        messages = await task
    assert [m.attempt for m in messages if m.final] == [2]
    assert "x" in messages[-1].value["names"]
    assert "connection to box was lost" in caplog.text
    await until(lambda: not any(map(is_running, first)))


async def test_a_job_that_loses_every_worker_is_given_up(sshd, box):
    host = RetryingHost(box, tries=2)
    task = asyncio.create_task(_all(host, job("import time\ntime.sleep(30)")))
    killed = set()
    while not task.done():
        if steps(sshd) and not killed & set(workers(sshd)):
            killed |= set(workers(sshd))
            box._connection._process.kill()
        await asyncio.sleep(0.02)
    with pytest.raises(JobFailedError, match="lost 2 times while it ran this"):
        await task


async def test_a_rebooted_host_gets_its_job_back(tmp_path, marks_folder):
    server = Sshd(tmp_path)
    server.start()
    box = server.host(first_pause=0.1)
    try:
        rebooted = marks_folder / "rebooted"
        task = asyncio.create_task(_all(RetryingHost(box), job(LONG.format(until=str(rebooted)))))
        await until(lambda: steps(server))
        server.reboot()
        await until(lambda: box._failure)  # it was tried while the host was down
        rebooted.touch()
        server.start()
        messages = await task
        assert [m.attempt for m in messages if m.final] == [2]
    finally:
        await box.close()
        server.stop()


async def test_a_host_that_stays_away_is_given_up_with_its_pauses_growing(tmp_path):
    server = Sshd(tmp_path)
    server.start()
    box = server.host(first_pause=0.05)
    try:
        task = asyncio.create_task(_all(RetryingHost(box, patience=3), job("import time\ntime.sleep(30)")))
        await until(lambda: steps(server))
        server.reboot()
        with pytest.raises(HostUnreachableError, match="refused") as gone:
            await task
        assert not isinstance(gone.value, JobInterruptedError)
        assert gone.value.again_in > 0.2
    finally:
        await box.close()
        server.stop()


async def test_no_room_for_the_worker(sshd, tmp_path):
    small = _in_small_folder(tmp_path, len(worker_archive()) // 2)
    box = sshd.host(python=small)
    with pytest.raises(HostUnreachableError, match=r"could not be written.*No space left"):
        await box.facts()
    await box.close()


async def test_no_room_for_a_job(sshd, tmp_path):
    box = sshd.host(python=_in_small_folder(tmp_path, len(worker_archive()) + (1 << 20)))
    try:
        with pytest.raises(JobFailedError) as failed:
            await answer(box, job("x = 1\n#" + "x" * (4 << 20)))
        assert failed.value.error.code == "disk-full"
        with pytest.raises(JobFailedError, match="No space left"):
            await answer(box, job("open('big', 'wb').write(bytes(4 << 20))"))
        assert "x" in (await answer(box, job("x = 1")))["names"]
    finally:
        await box.close()


async def test_a_slow_link(sshd, tmp_path):
    relay = Path(__file__).parents[2] / "support" / "slow_relay.py"
    command = f"ProxyCommand={sys.executable} {relay} 127.0.0.1 {sshd.port} 400000 0.05"
    box = sshd.host(options=["-o", command], patience=30.0)
    try:
        assert "x" in (await answer(box, job("x = 1\n#" + "x" * 200_000)))["names"]
    finally:
        await box.close()


GARBAGE = {
    "random bytes": "head -c 300000 /dev/urandom",
    "a header without an end": "printf '@accelopt/1 '",
    "a frame that is no JSON": r"printf '@accelopt/1 7\nnot{json\n'",
    "a frame that is no object": r"printf '@accelopt/1 2\n[]\n'",
    "a frame larger than any": r"printf '@accelopt/1 999999999999\n'",
    "a very long line": "head -c 2000000 /dev/zero | tr '\\\\0' 'x'",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
async def test_garbage_before_the_first_frame_is_skipped(sshd, tmp_path, garbage):
    box = sshd.host(python=script(tmp_path / "noisy", f'{garbage}\nexec {sys.executable} "$@"'))
    try:
        assert "x" in (await answer(box, job("x = 1")))["names"]
    finally:
        await box.close()


async def test_garbage_that_never_ends(sshd, tmp_path):
    box = sshd.host(python=script(tmp_path / "endless", "exec yes no frame in here"), patience=1.0)
    with pytest.raises(HostUnreachableError, match=r"did not answer within 1 s.*no frame in here"):
        await box.facts()
    await box.close()


async def test_a_worker_of_another_protocol(sshd, tmp_path):
    hello = r"""printf '@accelopt/1 31\n{"type":"hello","protocol":999}\n'; exec cat > /dev/null"""
    box = sshd.host(python=script(tmp_path / "newer", hello))
    with pytest.raises(HostUnreachableError, match="speaks protocol 999"):
        await box.facts()
    await box.close()


async def test_answers_of_the_wrong_shape_do_not_end_the_client(sshd, tmp_path):
    hello = '{"type":"hello","protocol":1,"versions":[],"devices":7,"memory_bytes":"many","isolation":3}'
    script_text = f"printf '%s\\n' '@accelopt/1 {len(hello)}' '{hello}'"
    box = sshd.host(python=script(tmp_path / "odd", f"{script_text}; exec cat > /dev/null"))
    with pytest.raises(HostUnreachableError, match="introduced itself in a way"):
        await box.facts()
    await box.close()


async def test_a_login_banner_and_a_chatty_login_shell(tmp_path):
    (tmp_path / "banner").write_text("Authorised use only. All is logged.\n")
    chatty = script(
        tmp_path / "chatty", 'echo "Welcome to $HOSTNAME"; echo quota >&2; exec sh -c "$SSH_ORIGINAL_COMMAND"'
    )
    server = Sshd(tmp_path, f"Banner {tmp_path}/banner\nForceCommand {chatty}\n")
    server.start()
    box = server.host()
    try:
        assert "x" in (await answer(box, job("x = 1")))["names"]
    finally:
        await box.close()
        server.stop()


async def _all(host, work):
    return [message async for message in host.run(work)]


def _in_small_folder(tmp_path: Path, size: int) -> str:
    """A Python whose temporary folder has room for ``size`` bytes."""
    (tmp_path / "small").mkdir()
    inner = f"mount -t tmpfs -o size={size} none {tmp_path}/small && exec env TMPDIR={tmp_path}/small {sys.executable}"
    assert shutil.which("unshare")
    inside = script(tmp_path / "inside", f'{inner} "$@"')
    return script(tmp_path / "outside", f'exec unshare --map-root-user --mount {inside} "$@"')
