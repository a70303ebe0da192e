"""A search that is killed between two calls of one answer goes on with the second: the first was paid for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.played_model import Reply, playing, says

from accelopt_agent.search.history import past_runs
from accelopt_memory.memory import Memory

TESTS = Path(__file__).parents[2]

PLAN = says("LINES 7-8\nMake it wide, so that fewer loads are waited for.")
WIDE = says("<<<<<<< CHANGE 1\n    time_us = 60\n    wide = True\n>>>>>>>")

PLANNER, CODER = "You plan one change", "You carry out one planned change"


def started(memory: Path, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "support.killed_talk", str(memory), url], cwd=TESTS, stdout=subprocess.PIPE, text=True
    )  # fmt: skip


@pytest.mark.slow
def test_no_request_is_sent_again_after_a_kill_between_planner_and_coder(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with playing([PLAN, Reply(hang=True), WIDE]) as played:
        killed = started(path, played.url)
        try:
            for _ in range(2):
                assert played.each.acquire(timeout=60), "the second question did not come"
        finally:
            killed.kill()
            killed.communicate()
        again = started(path, played.url)
        output, _ = again.communicate(timeout=60)
        systems = [request["messages"][0]["content"] for request in played.asked]
    assert again.returncode == 0
    assert output.strip() == "suggestion 60.0"
    planner, hanging, coder, lesson = systems
    assert planner.startswith(PLANNER)
    assert not lesson.startswith((PLANNER, CODER))
    assert hanging.startswith(CODER)
    assert coder.startswith(CODER)
    with Memory.open(path) as memory:
        steps = [step.what for run in past_runs(memory) for step in run.steps]
    assert steps.count("heard the planner") == 1
    assert steps.count("heard the coder") == 1
