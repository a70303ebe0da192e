"""A database that cannot be used: one clear error that says what to do, and nothing is lost."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accelopt_memory.connection import Connection
from accelopt_memory.errors import MemoryUnavailableError, explain
from accelopt_memory.location import default_path
from accelopt_memory.memory import Memory, set_aside
from accelopt_memory.records import Pair, Trap

TRAP = Trap("h", "c", "trn1", "rule:x", "slower")


def test_looking_makes_no_file(path: Path) -> None:
    with Memory.open(path, read_only=True) as memory:
        assert memory.pairs() == []
        assert memory.search("anything") == []
        assert memory.stats().bytes == 0
        assert memory.stats().path == str(path)
        with pytest.raises(MemoryUnavailableError, match="reading only"):
            memory.add_trap(TRAP)
    assert not path.parent.exists()


def test_the_file_is_private(memory: Memory, path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_corrupt_file_is_reported_and_left_alone(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    for read_only in (False, True):
        with pytest.raises(MemoryUnavailableError, match="set-aside") as caught:
            Memory.open(path, read_only=read_only)
        assert caught.value.trouble == "corrupt"
        assert str(path) in str(caught.value)
    assert path.read_bytes() == content


def _all_pairs(path: Path) -> list[Pair]:
    with Memory.open(path) as memory:
        return memory.pairs()


def test_damage_found_later_is_reported_too(path: Path, make_pair: Callable[..., Pair]) -> None:
    with Memory.open(path) as memory:
        for number in range(30):
            memory.add_pair(make_pair(number))
    data = bytearray(path.read_bytes())
    data[8192:] = os.urandom(len(data) - 8192)
    path.write_bytes(data)
    with pytest.raises(MemoryUnavailableError) as caught:
        _all_pairs(path)
    assert caught.value.trouble == "corrupt"


def test_a_corrupt_file_is_moved_aside_when_asked(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"rubbish" * 1000)
    moved = set_aside(path)
    assert moved is not None
    assert moved.read_bytes() == b"rubbish" * 1000
    with Memory.open(path) as memory:
        memory.add_trap(TRAP)
    assert set_aside(path.with_name("absent.db")) is None


def test_a_locked_file_is_reported_after_a_short_wait(path: Path) -> None:
    with Memory.open(path, busy_seconds=0.05) as memory:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(MemoryUnavailableError, match="close that program") as caught:
            memory.add_trap(TRAP)
        assert caught.value.trouble == "locked"
        assert memory.traps() == [], "reading goes on while another one writes"
        other.execute("ROLLBACK")
        other.close()
        memory.add_trap(TRAP)
        assert len(memory.traps()) == 1, "and the next save works"


def test_a_full_disk_is_reported_and_the_rest_stays(path: Path, make_pair: Callable[..., Pair]) -> None:
    connection = Connection(path)
    memory = Memory(connection)
    memory.add_pair(make_pair())
    with connection.reading() as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages}")  # SQLite answers as it does when the disk is full
    with pytest.raises(MemoryUnavailableError, match="Free some space") as caught:
        memory.add_pair(make_pair(1, slow_text=random.Random(1).randbytes(200_000).hex()))
    assert caught.value.trouble == "disk-full"
    assert len(memory.pairs()) == 1
    with connection.reading() as db:
        db.execute("PRAGMA max_page_count = 100000")
    memory.add_pair(make_pair(1, slow_text=random.Random(1).randbytes(200_000).hex()))
    assert len(memory.pairs()) == 2
    memory.close()


def test_a_place_that_is_no_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MemoryUnavailableError, match="ACCELOPT_DB") as caught:
        Memory.open(tmp_path / "file" / "memory.db")
    assert caught.value.trouble == "unreachable"
    with pytest.raises(MemoryUnavailableError):
        Memory.open(tmp_path)


READ_ONLY_USE = """
import os, sys
from pathlib import Path
path = Path(sys.argv[1])
from accelopt_memory.errors import MemoryUnavailableError
from accelopt_memory.memory import Memory
from accelopt_memory.records import Trap
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
with Memory.open(path, read_only=True) as memory:
    print(memory.stats().traps)
try:
    Memory.open(path).add_trap(Trap("h", "d", "trn1", "rule:x", "slower"))
except MemoryUnavailableError as error:
    print(error.trouble)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that others may enter: pytest closes its own again whenever a run of this user begins."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_read_only_file_in_a_read_only_folder_can_be_read(open_folder: Path) -> None:
    """In a process without the power to write anything (root may write into any file)."""
    folder = open_folder / "shared"
    path = folder / "memory.db"
    with Memory.open(path) as memory:
        memory.add_trap(TRAP)
    path.chmod(0o444)
    folder.chmod(0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY_USE, str(path)], capture_output=True, text=True, check=False
        )
    finally:
        folder.chmod(0o755)
    assert done.stdout.split() == ["1", "read-only"], done.stderr


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (sqlite3.OperationalError("database is locked"), "locked"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "read-only"),
        (sqlite3.DatabaseError("database disk image is malformed"), "corrupt"),
        (sqlite3.OperationalError("database or disk is full"), "disk-full"),
        (sqlite3.OperationalError("disk I/O error"), "unreachable"),
        (OSError(28, "No space left on device"), "disk-full"),
        (PermissionError(13, "Permission denied"), "read-only"),
        (FileNotFoundError(2, "No such file or directory"), "unreachable"),
    ],
)
def test_each_trouble_has_its_advice(error: sqlite3.Error | OSError, trouble: str) -> None:
    explained = explain(error, Path("/m.db"))
    assert explained is not None
    assert explained.trouble == trouble
    assert "/m.db" in str(explained)


def test_a_mistake_of_ours_is_not_called_trouble() -> None:
    assert explain(sqlite3.OperationalError("no such column: nonsense"), Path("/m.db")) is None
    assert explain(sqlite3.IntegrityError("UNIQUE constraint failed"), Path("/m.db")) is None


def test_the_environment_names_the_file(tmp_path: Path) -> None:
    assert default_path({"ACCELOPT_DB": str(tmp_path / "m.db")}) == tmp_path / "m.db"
    assert default_path({"ACCELOPT_DB": " "}).name == "memory.db"
    assert default_path({"ACCELOPT_DB": "~/m.db"}) == Path.home() / "m.db"


def test_when_the_file_is_gone_and_cannot_be_made_again_the_next_save_works_once_it_can(path: Path) -> None:
    with Memory.open(path) as memory:
        memory.add_trap(TRAP)
        path.parent.rename(path.parent.with_name("away"))
        path.parent.write_text("in the way")
        for _ in range(2):
            with pytest.raises(MemoryUnavailableError, match="ACCELOPT_DB"):
                memory.add_trap(TRAP)
            with pytest.raises(MemoryUnavailableError, match="ACCELOPT_DB"):
                memory.traps()
        path.parent.unlink()
        path.parent.with_name("away").rename(path.parent)
        memory.add_trap(Trap("h", "d", "trn1", "rule:x", "slower"))
        assert len(memory.traps()) == 2


def test_what_was_set_aside_is_not_read_any_more(path: Path) -> None:
    with Memory.open(path) as memory:
        memory.add_trap(TRAP)
        set_aside(path)
        assert memory.traps() == []


def test_a_known_profile_is_read_while_another_program_writes(path: Path) -> None:
    with Memory.open(path, busy_seconds=0.05) as memory:
        memory.profile_cache.put("key", {"us": 1})
        other = sqlite3.connect(path, isolation_level=None)
        other.execute(
            "UPDATE profile_cache SET used = used - 7200"
        )  # so long ago that the read counts as a use
        other.execute("BEGIN IMMEDIATE")
        assert memory.profile_cache.get("key") == {"us": 1}
        other.close()


def test_a_file_that_may_only_be_read_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(path) as memory:
        memory.add_trap(TRAP)

    def refuse(self: Connection) -> None:
        raise MemoryUnavailableError("unreachable", path, "unable to open database file")

    with monkeypatch.context() as patched:
        patched.setattr(Connection, "_open_to_write", refuse)
        with pytest.raises(MemoryUnavailableError):
            Memory.open(path)
        patched.setattr(os, "access", lambda place, mode: mode == os.R_OK)
        with Memory.open(path) as memory:
            assert len(memory.traps()) == 1
            with pytest.raises(MemoryUnavailableError) as caught:
                memory.add_trap(TRAP)
            assert caught.value.trouble == "read-only"
