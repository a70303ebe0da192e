"""Jobs on a real Ray cluster of three nodes on this machine: placing by resources, a lost node, what goes wrong."""

import asyncio
import contextlib
import os
import re
from pathlib import Path

import pytest
import pytest_asyncio
from support.processes import stat_fields
from support.seen_by_steps import seen_by_steps
from support.waiting import until
from support.worker_jobs import answer, job

from accelopt_profiling.hosts.host import HostUnreachableError, JobFailedError
from accelopt_profiling.hosts.ray import RayHost
from accelopt_profiling.hosts.ray_bridge import parse_ask

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
#: So that a lost node is noticed within seconds.
QUICK = {
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 4,
    "health_check_initial_delay_ms": 0,
}
#: Runs until a file is there: as long as it takes to lose what runs it.
LONG = "import os, time\nwhile not os.path.exists({until!r}): time.sleep(0.02)\nx = 1\n"
SMALL = {"object_store_memory": 80 << 20, "num_cpus": 2}


@pytest.fixture
def marks_folder():
    with seen_by_steps() as folder:
        yield folder


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster  # takes long, and every collection would wait for it

    head = {**SMALL, "include_dashboard": False, "num_cpus": 1, "_system_config": QUICK}
    ray_cluster = Cluster(initialize_head=True, head_node_args=head)
    yield ray_cluster
    ray_cluster.shutdown()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(cluster):
    ray = RayHost("fleet", cluster.address)
    yield ray
    await ray.close()


async def test_what_the_cluster_has_is_told(cluster, host):
    facts = await host.facts()
    assert facts.resources["CPU"] == 1
    assert facts.versions["ray"]
    assert facts.devices == []


async def test_a_job_runs_there_as_here(host):
    assert "x" in (await answer(host, job("x = 1")))["names"]
    with pytest.raises(JobFailedError) as failed:
        await answer(host, job("import os\nos.kill(os.getpid(), 11)"))
    assert failed.value.error.code == "crashed"
    with pytest.raises(JobFailedError, match="division"):
        await answer(host, job("1 / 0"))


@pytest.mark.long
async def test_a_job_on_a_lost_node_is_run_again_elsewhere_and_answers_once(cluster, host, marks_folder):
    first = cluster.add_node(**SMALL, resources={"neuron_cores": 1})
    lost = marks_folder / "lost"
    task = asyncio.create_task(_all(host, job(LONG.format(until=str(lost)), seconds=60)))
    await until(_steps, seconds=60)
    before = _steps()
    second = cluster.add_node(**SMALL, resources={"neuron_cores": 1})
    cluster.remove_node(first, allow_graceful=False)
    lost.touch()
    messages = await asyncio.wait_for(task, 90)
    assert [m.final for m in messages] == [True]
    assert "x" in messages[0].value["names"]
    await until(lambda: not set(before) & set(_steps()))
    cluster.remove_node(second)


async def test_a_job_whose_worker_is_lost_is_run_again(host, marks_folder):
    killed = marks_folder / "killed"
    task = asyncio.create_task(_all(host, job(LONG.format(until=str(killed)), seconds=60)))
    await until(_steps, seconds=60)
    worker = re.search(r"/accelopt-(\d+)-", os.readlink(f"/proc/{_steps()[0]}/cwd"))
    os.kill(int(worker.group(1)), 9)
    killed.touch()
    messages = await asyncio.wait_for(task, 90)
    assert [(m.final, "x" in m.value["names"]) for m in messages] == [(True, True)]


async def test_a_job_that_asks_for_what_no_node_has_waits_and_can_be_cancelled(cluster):
    host = RayHost("fleet", cluster.address, ask="trainium_of_tomorrow=1")
    try:
        await host.facts()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(answer(host, job("x = 1")), 2)
        assert not _steps()
    finally:
        await host.close()


async def test_a_cluster_that_is_not_there():
    host = RayHost("fleet", "127.0.0.1:1", patience=3)
    with pytest.raises(HostUnreachableError, match="fleet"):
        await host.facts()
    with pytest.raises(HostUnreachableError, match="next try in"):
        await host.facts()


@pytest.mark.parametrize(
    ("text", "ask"),
    [
        ("", {}),
        ("num_gpus=1", {"num_gpus": 1}),
        (" num_gpus=0.5, neuron_cores = 2 ", {"num_gpus": 0.5, "neuron_cores": 2}),
    ],
)
async def test_what_a_job_asks_for(text, ask):
    assert parse_ask(text) == ask


async def test_an_ask_that_cannot_be_read():
    with pytest.raises(ValueError, match=re.escape('must look like "num_gpus=1"')):
        RayHost("fleet", "auto", ask="a gpu")


def _steps() -> list[int]:
    """Processes of steps on the cluster's nodes, all of which are this machine: their worker is a child of Ray's."""
    pids = []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            of = re.search(r"/accelopt-(\d+)-[^/]*/job-", os.readlink(place))
            if of and "raylet" in _ancestors(int(of.group(1))):
                pids.append(int(place.parent.name))
    return pids


def _ancestors(pid: int) -> list[str]:
    """The names of the processes above ``pid``."""
    names = []
    while pid > 1:
        names.append(Path(f"/proc/{pid}/comm").read_text().strip())
        pid = int(stat_fields(pid)[1])
    return names


async def _all(host, work):
    return [message async for message in host.run(work)]
