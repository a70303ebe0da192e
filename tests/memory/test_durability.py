"""What was reported as saved is there after the process that saved it was killed; several programs share
one file."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from accelopt_memory.memory import Memory
from accelopt_memory.records import Pair, Trap

SAVES_UNTIL_KILLED = """
import sys
from pathlib import Path
from accelopt_memory.memory import Memory
from accelopt_memory.records import Trap
memory = Memory.open(Path(sys.argv[1]))
run = memory.run_log.start("/k.py", "k", "h", "trn1")
print("run", run, flush=True)
for number in range(100000):
    trap = memory.add_trap(Trap("h", str(number), "trn1", "rule:x", "slower"))
    event = memory.run_log.add_event(run, "tried", {"number": number})
    print(trap, event, flush=True)
"""

DIES_INSIDE_A_TRANSACTION = """
import os, signal, sys
from pathlib import Path
from accelopt_memory.connection import Connection
from accelopt_memory.records import Trap
from accelopt_memory.memory import Memory
connection = Connection(Path(sys.argv[1]))
memory = Memory(connection)
with memory.transaction():
    memory.add_trap(Trap("h", "half", "trn1", "rule:x", "slower"))
    os.kill(os.getpid(), signal.SIGKILL)
"""

ADDS_MANY = """
import sys
from pathlib import Path
from accelopt_memory.memory import Memory
from accelopt_memory.records import Trap
memory = Memory.open(Path(sys.argv[1]), busy_seconds=30)
for number in range(40):
    memory.add_trap(Trap("h", f"{sys.argv[2]}-{number}", "trn1", "rule:x", "slower"))
"""


def test_what_was_reported_as_saved_survives_a_kill(path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", SAVES_UNTIL_KILLED, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    run = child.stdout.readline().split()[1]
    reported = [child.stdout.readline().split() for _ in range(25)]
    os.kill(child.pid, signal.SIGKILL)
    reported += [line.split() for line in child.stdout.read().splitlines() if len(line.split()) == 2]
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()
    with Memory.open(path) as memory:
        ids = {trap.id for trap in memory.traps("h")}
        assert {trap for trap, _ in reported if len(trap) == 16} <= ids
        assert len(memory.run_log.events(run)) >= len(reported) - 1
        assert [r.id for r in memory.run_log.runs(status="running")] == [run], "a resumed search finds it"
        memory.add_trap(Trap("h", "after", "trn1", "rule:x", "slower"))


def test_half_a_transaction_leaves_nothing(path: Path) -> None:
    with Memory.open(path):
        pass
    child = subprocess.run([sys.executable, "-c", DIES_INSIDE_A_TRANSACTION, str(path)], check=False)
    assert child.returncode == -signal.SIGKILL
    with Memory.open(path) as memory:
        assert memory.traps() == []


def test_several_processes_open_and_write_a_new_file_at_once(path: Path) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", ADDS_MANY, str(path), name], stderr=subprocess.PIPE, text=True
        )
        for name in ("a", "b", "c")
    ]
    ends = [(child.communicate()[1], child.returncode) for child in children]
    assert [code for _, code in ends] == [0, 0, 0], ends
    with Memory.open(path, read_only=True) as memory:
        assert len(memory.traps()) == 120


def test_opening_waits_for_a_program_that_writes_without_a_log(path: Path) -> None:
    path.parent.mkdir()
    other = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("CREATE TABLE theirs (a)")
    threading.Timer(0.2, other.execute, ["COMMIT"]).start()
    with Memory.open(path) as memory:  # SQLite's own timeout does not hold for the switch to a log
        memory.add_trap(Trap("h", "c", "trn1", "rule:x", "slower"))
    other.close()


def test_threads_share_one_memory(memory: Memory, make_pair: Callable[..., Pair]) -> None:
    failures: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for number in range(20):
                memory.add_trap(Trap("h", f"{name}-{number}", "trn1", "rule:x", "slower"))
                memory.add_pair(make_pair(number))
                assert memory.pair(make_pair(number).id) is not None
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert (memory.stats().traps, memory.stats().pairs) == (80, 20)


def test_a_file_deleted_while_it_is_open_does_not_swallow_what_is_saved(
    memory: Memory, path: Path, make_pair: Callable[..., Pair]
) -> None:
    memory.add_pair(make_pair(0))
    for file in path.parent.iterdir():
        file.unlink()
    pair_id = memory.add_pair(make_pair(1))
    with Memory.open(path, read_only=True) as other:
        assert [pair.id for pair in other.pairs()] == [pair_id]
