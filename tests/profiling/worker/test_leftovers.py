"""What a hostile job leaves in its folder stops no worker: neither this one nor the next, and all of it goes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.waiting import until
from support.worker_jobs import answer, job, local_host

from accelopt_profiling.folder_tree import remove_tree, size_of_tree
from accelopt_profiling.hosts.host import HostUnreachableError, JobFailedError
from accelopt_profiling.worker.job_folders import pid_namespace

#: Each is a program that leaves something in the folders that a step may write to.
LEAVES = {
    "1,500 nested folders": "for n in range(1500): os.mkdir('d' * 100); os.chdir('d' * 100)",
    "nested folders of one letter": "for n in range(5000): os.mkdir('d'); os.chdir('d')",
    "nested folders with files": (
        "for n in range(1200):\n    open('f', 'w').close(); os.mkdir('d'); os.mkdir('e'); os.chdir('d')"
    ),
    "names of 255 bytes": "for n in range(300): os.makedirs(f'{n:0255}' + '/' + 'x' * 255)",
    "undecodable names": (
        "for n in range(128, 256): os.mkdir(bytes([n])); open(bytes([n, 47, n]), 'w').close()\n"
        "os.mkdir('two\\nlines'); os.mkdir('\\x1b[2J')"
    ),
    "no permission": (
        "os.makedirs('a/b/c'); open('a/b/c/d', 'w').close(); open('e', 'w').close(); os.chmod('e', 0)\n"
        "for name in ('a/b/c', 'a/b', 'a', '../home', '../tmp', '.'): os.chmod(name, 0)"
    ),
    "no permission, nested": (
        "for n in range(1500): os.mkdir('d'); os.chdir('d')\n"
        "for n in range(1500): os.chmod('.', 0o300); os.chdir('..')"
    ),
    "sockets and pipes": (
        "import socket\nos.makedirs('a/b'); os.mkfifo('a/b/p')\ns = socket.socket(socket.AF_UNIX); s.bind('a/s')"
    ),
    "loops of links": (
        "os.mkdir('a'); os.symlink('a', 'b'); os.symlink('.', 'a/here'); os.symlink('..', 'a/up')\n"
        "os.symlink('loop', 'loop'); os.symlink('/', 'root'); os.rmdir('../tmp'); os.symlink('/', '../tmp')"
    ),
    "times in the future": (
        "os.mkdir('a'); open('a/f', 'w').close()\nfor name in ('a/f', 'a', '.'): os.utime(name, (2**33, 2**33))"
    ),
    "times before 1970": "os.mkdir('a')\nfor name in ('a', '.'): os.utime(name, (-2**31, -2**31))",
    "names of the worker's own": (
        "for name in ('activity.json', 'src', 'gate', 'root', 'job-x', 'src.py'):\n"
        "    os.mkdir(name); os.mkdir('../' + name) if not os.path.lexists('../' + name) else None"
    ),
    "100,000 files": "for n in range(100_000): open(str(n), 'w').close()",
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder for temporary files, as short as the system's, which has to be empty in the end too."""
    folder = Path(tempfile.mkdtemp(prefix="leftovers-"))
    folder.chmod(0o711)
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    remove_tree(folder)


@pytest.mark.slow
@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.asyncio
async def test_what_a_job_leaves_stops_no_worker_and_goes(place, leaves):
    async with local_host() as host:
        await answer(host, job(f"import os\n{LEAVES[leaves]}\n"))
        assert "x" in (await answer(host, job("x = 1")))["names"]
        if leaves in ("100,000 files", "no permission"):  # in the middle of the removal
            os.kill(host.process, 9)
            await until(lambda: not host._connection.alive)
            assert "x" in (await answer(host, job("x = 1")))["names"]
        await until(lambda: len(list(place.glob("accelopt-*/job-*"))) == 0)
    await until(lambda: not list(place.iterdir()))


@pytest.mark.slow
@pytest.mark.parametrize("leaves", ["1,500 nested folders", "no permission", "100,000 files"])
@pytest.mark.asyncio
async def test_the_next_worker_starts_beside_the_folder_of_one_that_is_gone(place, leaves):
    """Such folders lie there where a whole container was ended, or a worker of an older version."""
    ended = await asyncio.create_subprocess_exec("true")
    await ended.wait()
    stale = place / f"accelopt-{ended.pid}-{pid_namespace()}-x"
    for part in ("work", "home", "tmp"):
        (stale / "job-a" / part).mkdir(parents=True)
    program = f"import os\n{LEAVES[leaves]}"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, cwd=stale / "job-a" / "work"
    )
    assert await process.wait() == 0
    async with local_host() as host:
        assert "x" in (await answer(host, job("x = 1")))["names"]
        await until(lambda: not stale.exists())


KEPT = {
    "a mounted folder": "mkdir {stale}/a/m {kept} && touch {kept}/f && mount --bind {kept} {stale}/a/m",
    "an immutable file": "touch {stale}/a/f && chattr +i {stale}/a/f",
    "an immutable folder": "mkdir {stale}/a/d && touch {stale}/a/d/f && chattr +i {stale}/a/d",
    "a folder that is written to": "mkdir {stale}/a/w",
}


@pytest.mark.slow
@pytest.mark.parametrize("plants", KEPT.values(), ids=KEPT)
def test_what_the_system_does_not_let_go_stays_and_the_rest_goes(tmp_path, plants):
    """What is mounted in a leftover folder is somebody's: nothing of it is touched."""
    if os.getuid() != 0:
        pytest.fail("only root can mount and set attributes: run the tests as root", pytrace=False)
    stale, outside = tmp_path / "stale", tmp_path / "kept"
    (stale / "a" / "deep" / "er").mkdir(parents=True)
    program = "import sys, pathlib\nfrom accelopt_profiling.folder_tree import remove_tree\n"
    removal = f'{sys.executable} -c "{program}remove_tree(pathlib.Path(sys.argv[1]))" {stale}'
    script = (
        f"set -e; {plants.format(stale=stale, kept=outside)}; {removal}; find {stale} -mindepth 1 || true"
    )
    listed = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    subprocess.run(["chattr", "-R", "-i", str(stale)], capture_output=True, check=False)
    assert not any(name.endswith("er") for name in listed)
    assert not outside.exists() or [f.name for f in outside.iterdir()] == ["f"]
    assert bool(listed) == (plants != KEPT["a folder that is written to"])


@pytest.mark.slow
def test_a_removal_keeps_few_descriptors_however_deep_the_folder_is(place):
    top = place / "top"
    top.mkdir()
    code = (
        "import os, pathlib, resource, sys\nfrom accelopt_profiling.folder_tree import remove_tree, size_of_tree\n"
        "for n in range(3000): os.mkdir('d' * 60); os.chdir('d' * 60)\n"
        "open('f', 'wb').write(bytes(1 << 20)); os.chdir('/')\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9))\n"
        "print(size_of_tree(sys.argv[1]) >= 1 << 20)\nremove_tree(pathlib.Path(sys.argv[1]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(top)], cwd=top, capture_output=True, text=True, check=False
    )
    assert (ran.stdout, ran.stderr) == ("True\n", "")
    assert not top.exists()


def test_a_measured_folder_counts_each_byte_once_and_follows_no_link(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "f").write_bytes(bytes(1 << 20))
    os.link(tmp_path / "a" / "b" / "f", tmp_path / "again")
    (tmp_path / "a" / "link").symlink_to("/usr")
    assert 1 << 20 <= size_of_tree(str(tmp_path)) < 2 << 20
    assert size_of_tree(str(tmp_path / "a" / "link")) == size_of_tree(str(tmp_path / "none")) == 0


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_full_disk_is_named_with_what_to_do(tmp_path):
    """All that Python takes for temporary files is full."""
    python = tmp_path / "python"
    full = "for place in /tmp /var/tmp; do mount -t tmpfs -o nr_inodes=1 none $place; done; cd /proc"
    python.write_text(
        f'#!/bin/sh\nexec unshare --mount sh -c \'{full}; exec {sys.executable} "$@"\' sh "$@"\n'
    )
    python.chmod(0o755)
    async with local_host(str(python)) as host:
        with pytest.raises(
            HostUnreachableError, match=r"No usable temporary directory.* set TMPDIR to another"
        ):
            await answer(host, job("x = 1"))


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_job_that_fills_the_disk_is_told_so_and_the_next_one_runs(place):
    text = "import time\nfor n in range(64): open(str(n), 'wb').write(bytes(1 << 20))\ntime.sleep(30)"
    async with local_host() as host:
        with pytest.raises(JobFailedError, match="wrote more than 8 MiB"):
            await answer(host, job(text, written_bytes=8 << 20))
        assert "x" in (await answer(host, job("x = 1")))["names"]
