"""What a search takes over from earlier ones: the same work under the same conditions, and nothing else."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.toy_search import FUSED, TEXT, WIDE, ToyCost, ToyGate, ToyProposer, play, request

from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.events import CandidateTried, Finished, SuggestionFound
from accelopt_agent.optimize import drive
from accelopt_agent.request import OptimizeRequest
from accelopt_agent.search.history import interrupted
from accelopt_agent.search.paid import PaidWork, content_of, run_content
from accelopt_agent.search.recorder import Recorder
from accelopt_memory.memory import Memory
from accelopt_profiling.examination import examine
from accelopt_profiling.gate.request import Tell, untold
from accelopt_profiling.gate.verdict import Reason, Verdict
from accelopt_profiling.hosts.host import HostFacts, HostUnreachableError
from accelopt_profiling.jobs import Limits
from accelopt_profiling.measurement import LIMITS
from accelopt_profiling.receipt import Receipt

KERNEL = "from shapes import ROWS\n" + TEXT
PROBLEM = """\
from inputs import given


def get_inputs():
    return given(4096)


def reference(x):
    return x
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "k.py").write_text(KERNEL)
    (tmp_path / "k_problem.py").write_text(PROBLEM)
    (tmp_path / "shapes.py").write_text("ROWS = 1\n")
    (tmp_path / "inputs.py").write_text("def given(rows):\n    return [rows]\n")
    return tmp_path


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory.open(tmp_path / "memory.db")


def asked(project: Path, **options: Any) -> OptimizeRequest:
    path = project / "k.py"
    return replace(
        request(), file=examine(path, path.read_text(), project_root=project), resume=True, **options
    )


def edited(name: str, old: str, new: str) -> Any:
    def change(project: Path) -> None:
        file = project / name
        before = file.read_text()
        assert old in before
        file.write_text(before.replace(old, new))

    return change


CHANGES = {
    "the kernel": edited("k.py", "time_us = 100", "time_us = 101"),
    "the rest of its file": edited("k.py", "return 1", "return 2"),
    "its problem": edited("k_problem.py", "4096", "16384"),
    "what it imports": edited("shapes.py", "1", "2"),
    "what its problem imports": edited("inputs.py", "[rows]", "[2 * rows]"),
}
OTHERS: dict[str, dict[str, Any]] = {
    "the target": {"target": "trn2"},
    "the host": {"host": "another"},
    "a package of the host": {"facts": HostFacts("toy", versions={"triton": "3.8.0"})},
    "a device of the host": {"facts": HostFacts("toy", devices=[{"name": "H100"}])},
    "the limits": {"limits": Limits(seconds=7)},
    "the other kernel": {"kernel": "other"},
    "how it is measured": {"parts": [["cost on inputs"]]},
}


async def key(
    memory: Memory, project: Path, *, host: str = "toy", facts: HostFacts | None = None, kernel: str = "kernel",
    parts: list[Any] | None = None, **options: Any,
) -> bool:  # fmt: skip
    """Whether something that was stored without these options is taken over with them."""

    async def known() -> HostFacts:
        return facts or HostFacts("toy", versions={"triton": "3.7.1"})

    paid = PaidWork(Recorder(memory), asked(project, **options), host, known)

    async def compute() -> str:
        return "paid for"

    text = (project / "k.py").read_text()
    return (await paid("cost", str, (text, kernel), parts or [[]], compute))[1]


async def test_nothing_changed_is_taken_over(memory: Memory, project: Path) -> None:
    assert not await key(memory, project)
    assert await key(memory, project)
    (project / "beside.py").write_text("nobody = 'imports this'")
    assert await key(memory, project)


@pytest.mark.parametrize("what", CHANGES)
async def test_a_changed_text_is_paid_for_again(memory: Memory, project: Path, what: str) -> None:
    await key(memory, project)
    before = run_content(asked(project))
    CHANGES[what](project)
    assert not await key(memory, project)
    assert run_content(asked(project)) != before
    assert run_content(asked(project)) == content_of(asked(project).kernel_file())


@pytest.mark.parametrize("what", OTHERS)
async def test_other_conditions_are_paid_for_again(memory: Memory, project: Path, what: str) -> None:
    await key(memory, project)
    assert not await key(memory, project, **OTHERS[what])
    assert await key(memory, project)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from([*CHANGES, *OTHERS]), unique=True, max_size=3), st.integers(0, 1 << 30))
def test_any_change_changes_the_key(
    tmp_path_factory: pytest.TempPathFactory, what: list[str], number: int
) -> None:
    """Whatever is changed together: taken over exactly where nothing is."""
    folder = tmp_path_factory.mktemp("paid")
    (folder / ".git").mkdir()
    for name, text in {
        "k.py": KERNEL, "k_problem.py": PROBLEM, "shapes.py": "ROWS = 1\n",
        "inputs.py": f"def given(rows):\n    return [rows]  # {number}\n",
    }.items():  # fmt: skip
        (folder / name).write_text(text)
    options: dict[str, Any] = {}
    with Memory.open(folder / "memory.db") as memory:
        asyncio.run(key(memory, folder))
        for change in what:
            CHANGES[change](folder) if change in CHANGES else options.update(OTHERS[change])
        assert asyncio.run(key(memory, folder, **options)) == (not what)


async def test_a_changed_problem_takes_no_time_over(memory: Memory, project: Path) -> None:
    """The kernel stays, the size of its problem changes: every version is measured and checked again."""

    class Sized(ToyCost):
        async def cost(self, text: str, kernel: str) -> Any:
            self.seen.append(text)
            measured = await super().cost(text, kernel)
            rows = int((project / "k_problem.py").read_text().partition("given(")[2].partition(")")[0])
            assert measured.latency.us is not None
            return replace(measured, latency=replace(measured.latency, us=measured.latency.us * rows / 4096))

    rules = [ToyProposer({**WIDE, **FUSED})]
    first = drive(asked(project), Sized(KERNEL), ToyGate(), memory, "toy", lambda meter: rules)
    async for event in first:
        if isinstance(event, CandidateTried):
            break
    await first.aclose()
    kernel_hash = asked(project).kernel_file().kernels[0].content_hash
    assert interrupted(memory, kernel_hash, "trn1", "toy", run_content(asked(project))) is not None
    CHANGES["its problem"](project)
    assert interrupted(memory, kernel_hash, "trn1", "toy", run_content(asked(project))) is None
    cost, gate = Sized(KERNEL), ToyGate()
    events = [e async for e in drive(asked(project), cost, gate, memory, "toy", lambda meter: rules)]
    last = events[-1]
    assert isinstance(last, Finished)
    assert (last.usage.remembered, last.usage.judged) == (0, len(gate.seen))
    times = [e.latency.us for e in events if isinstance(e, CandidateTried)]
    assert min(t for t in times if t) > 4 * 50


async def test_a_host_that_is_lost_ends_the_search_with_what_it_has(memory: Memory, project: Path) -> None:
    async def facts() -> HostFacts:
        raise HostUnreachableError("The connection to toy was lost.")

    rules = [ToyProposer(WIDE)]
    search = drive(asked(project), ToyCost(KERNEL), ToyGate(), memory, "toy", lambda m: rules, facts=facts)
    *_, last = [event async for event in search]
    assert isinstance(last, Finished)
    assert (last.ending, last.reason) == ("failed", "The connection to toy was lost.")


@pytest.mark.parametrize("code", LIMITS)
async def test_a_limit_that_was_met_is_no_trap_and_paid_for_again(
    memory: Memory, project: Path, code: str
) -> None:
    """A machine that is less busy may answer otherwise."""

    class Busy(ToyCost):
        async def cost(self, text: str, kernel: str) -> Any:
            if "fused = True" in text:
                self.seen.append(text)
                raise CostUnavailableError(code, "It took too long.", lasting=False)
            return await super().cost(text, kernel)

    class BusyGate(ToyGate):
        async def check(self, text: str, kernel: str, tell: Tell = untold) -> tuple[Verdict, Receipt]:
            _, receipt = await super().check(text, kernel, tell)
            return Verdict(False, [Reason(code, "It took too long.")]), receipt

    rules = [ToyProposer({**WIDE, **FUSED})]
    busy, cost, gate = BusyGate(), ToyCost(KERNEL), ToyGate()
    events = await play(rules, memory, asked(project), Busy(KERNEL), busy)
    assert not [e for e in events if isinstance(e, SuggestionFound)]
    assert not memory.traps()
    await play(rules, memory, asked(project), cost, gate)
    assert any("fused = True" in text for text in cost.seen)
    assert set(busy.seen) <= set(gate.seen)


@pytest.mark.parametrize(
    ("status", "result", "process", "offered"),
    [
        ("running", {}, 1 << 22, True),  # its process is gone: such a number is none
        ("running", {}, None, False),  # this process, which is alive
        ("cancelled", {}, None, True),
        ("failed", {"reason": "The connection to h was lost."}, None, True),
        ("finished", {"ending": "early"}, None, True),
        ("finished", {"ending": "done"}, None, False),
    ],
    ids=["killed", "alive elsewhere", "stopped", "lost its host", "out of time", "done"],
)
async def test_a_run_is_offered_where_it_can_be_continued(
    memory: Memory, project: Path, status: Any, result: dict[str, Any], process: int | None, offered: bool
) -> None:
    await play([ToyProposer(WIDE)], memory, asked(project))
    (run,) = memory.run_log.runs()
    with memory.connection.writing() as db:
        db.execute("UPDATE runs SET status = ?", [status])
        if process is not None:
            db.execute("UPDATE runs SET options_json = json_set(options_json, '$.process', ?)", [process])
    if status != "running":
        memory.run_log.finish(run.id, status, result)
    interrupted_run = interrupted(memory, run.kernel_hash, "trn1", "toy", run_content(asked(project)))
    assert (interrupted_run is not None) == offered
