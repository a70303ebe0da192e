"""No program of ``support.hostile_programs`` gets out, as root and as another user, with namespaces and without.

The isolation is verified before any program runs: they would reach this machine's processes and files, were there none.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
from support.hostile_programs import PROGRAMS, Bait, prepare, program
from support.worker_jobs import answer, local_host

from accelopt_profiling.hosts.host import JobFailedError
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.jobs import Job, JobFiles, Limits, Step

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")]

NOBODY = 65534
#: Held by namespaces, or by another user: without both, a job's source files belong to the user that its steps run as.
NEED_NAMESPACES = {"change a source of the job", "replace a source of the job"}
#: Held by the watch over all processes of a step.
NEED_WATCH = {"disk in files without a name"}
LIMITS = Limits(seconds=30, memory_bytes=512 << 20, written_bytes=64 << 20)
#: Ways to end in which a program did not get what it wanted.
HELD = re.compile(r"^ValueError: HELD|wrote more than 64 MiB|used more memory")


def _python_for(user: int) -> list[str] | None:
    """A Python with NumPy that another user can run; None where this machine has none."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = f"PYTHONPATH={Path(numpy.__file__).parents[1]}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "env", packages, python]
        with contextlib.suppress(OSError):
            if (
                subprocess.run([*command, "-c", "import numpy"], capture_output=True, check=False).returncode
                == 0
            ):
                return command
    return None


@pytest.fixture(scope="module", params=["root", "user", "root without namespaces", "user without namespaces"])
def ended(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """How each program ended, by name."""
    who, _, spaces = request.param.partition(" ")
    root = os.getuid() == 0
    if who == "root" and not root:
        pytest.skip("not root")
    folder = tmp_path_factory.mktemp("bait")
    for place in (folder, *folder.parents[:3]):
        with contextlib.suppress(OSError):
            place.chmod(place.stat().st_mode | 0o055)
    python = _python_for(NOBODY) if root else [sys.executable]
    if python is None:
        pytest.skip("no Python that an unprivileged user can run")
    if who == "root":
        python = python[-3:]
    bait = prepare(folder, NOBODY if root and who == "user" else None)
    wrapper = folder / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {" ".join(python)} "$@"\n')
    wrapper.chmod(0o755)
    environment = {**os.environ, "HOME": str(bait.home), "TMPDIR": "/tmp", "OPENAI_API_KEY": "sk-secret"}
    environment["SSH_AUTH_SOCK"] = str(bait.places["socket"])
    if spaces:
        environment["ACCELOPT_NAMESPACES"] = "0"
    try:
        yield asyncio.run(_run_all(str(wrapper), environment, bait, not spaces))
    finally:
        bait.close()


async def _run_all(python: str, environment: dict[str, str], bait: Bait, spaces: bool) -> dict[str, str]:
    async with local_host(python, environment=environment) as host:
        isolation = (await host.facts()).isolation
        if spaces and not isolation.complete:
            pytest.fail(f"hostile programs are not run without a sandbox: {isolation.note}", pytrace=False)
        if not (isolation.network and isolation.files and isolation.calls and isolation.user):
            pytest.skip(f"this kernel keeps too little without namespaces: {isolation.note}")
        assert ("see this machine's processes" in isolation.note) != spaces
        return {
            name: await _ended(host, program(name, bait), str(bait.places["project"])) for name in PROGRAMS
        }


async def _ended(host: LocalHost, text: str, project: str) -> str:
    source = JobFiles("k.py", {"k.py": text}, [project], name="k.py")
    try:
        return f"loaded: {await answer(host, Job(source, [Step('load', 'numpy', limits=LIMITS)]))}"
    except JobFailedError as failed:
        return failed.error.message


def test_no_program_gets_out(ended: dict[str, str], request: pytest.FixtureRequest) -> None:
    allowed = NEED_NAMESPACES if "user without" in request.node.name else set()
    allowed |= NEED_WATCH if "without" in request.node.name else set()
    out = {name: how for name, how in ended.items() if not HELD.search(how) and name not in allowed}
    assert out == {}
