from __future__ import annotations

import math
from collections.abc import Callable

from accelopt_memory.forgetting import STOPPED, Forgotten, stopped_edits, tidy
from accelopt_memory.memory import Memory
from accelopt_memory.outcomes import Outcome
from accelopt_memory.records import Pair, Rejection, Trap


def _outcome(edit: str, task: int, ratio: float | None) -> Outcome:
    log_ratio = math.log(ratio) if ratio else None
    return Outcome(
        f"edit:{edit}", f"t{task}", None, "nki", "trn1", log_ratio, str(ratio), failed=ratio is None
    )


def test_an_edit_that_helps_no_longer_is_withdrawn_or_only_shown(
    memory: Memory, make_pair: Callable[..., Pair]
) -> None:
    for edit in ("helps", "stopped"):
        memory.outcomes.add(_outcome(edit, 0, 0.5))
        for task in range(1, STOPPED + 1):
            memory.outcomes.add(_outcome(edit, task, 1.0 if task % 2 else None))
    memory.outcomes.add(_outcome("helps", 1, 0.8))  # again on a kernel that it was tried on: the newest now
    memory.outcomes.add(_outcome("few", 0, 1.0))
    assert stopped_edits(memory.outcomes.all()) == ["stopped"]
    pairs = [
        make_pair(0, edit="helps"),
        make_pair(1, edit="stopped"),
        make_pair(2, edit="stopped", checked=True),
    ]
    for pair in pairs:
        memory.add_pair(pair)
    assert tidy(memory) == Forgotten(withdrawn=1, examples=1)
    assert [(p.edit, p.example) for p in memory.pairs(checked=True)] == [("helps", False), ("stopped", True)]
    assert tidy(memory) == Forgotten()


def test_beyond_the_budget_goes_what_is_of_least_use_and_no_decision(
    memory: Memory, make_pair: Callable[..., Pair]
) -> None:
    memory.add_pair(make_pair())
    memory.add_pair(make_pair(1, checked=True))
    memory.add_rejection(Rejection("h", "c", "rule:x"))
    run = memory.run_log.start("f.py", "k", "h", "trn1")
    with memory.transaction():
        for number in range(200):
            memory.add_trap(Trap(f"h{number}", "c", "trn1", "rule:x", "slower", "x" * 2000))
            memory.run_log.add_event(run, "step", {"text": "x" * 2000})
    assert tidy(memory, 100 << 20).deleted == {}
    gone = tidy(memory, 1200 << 10).deleted
    assert list(gone) == ["traps"], "the run has not ended: its steps are needed to go on with it"
    assert memory.traps()[-1].kernel_hash == "h199", "the oldest go first"
    memory.run_log.finish(run)
    gone = tidy(memory, 1).deleted
    assert {"run_events", "traps", "pairs"} <= gone.keys()
    assert ([p.id for p in memory.pairs(checked=True)], len(memory.rejected())) == ([make_pair().id], 1)
