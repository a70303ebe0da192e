from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from accelopt_memory.location import NOWHERE
from accelopt_memory.memory import Memory
from accelopt_memory.pair_folder import FOLDER
from accelopt_memory.records import Pair


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def _files(project: Path) -> list[str]:
    return sorted(path.stem for path in (project / FOLDER).glob("*.json"))


def test_an_accepted_pair_is_a_file_and_a_colleagues_memory_has_it(
    project: Path, tmp_path: Path, make_pair: Callable[..., Pair]
) -> None:
    kernel = project / "kernels" / "silu.py"
    pair = make_pair(file=str(kernel), receipts=("r",), moved=(), lesson="Fewer DMA starts.")
    with Memory.open(tmp_path / "mine.db", project=project) as mine:
        mine.add_pair(pair)
        mine.add_pair(make_pair(1, checked=True))
        mine.add_pair(make_pair(2, slow_text='API_KEY = "k3yk3yk3yk3y"\n' + pair.slow_text))
    assert _files(project) == [pair.id], "neither what nobody accepted nor a secret"
    text = (project / FOLDER / f"{pair.id}.json").read_text()
    assert str(tmp_path) not in text
    assert "created" not in text
    with Memory.open(tmp_path / "theirs.db", project=project) as theirs:
        assert theirs.refresh() == []
        assert theirs.refresh() == []
        (their_pair,) = theirs.pairs()
        features = dataclasses.replace(pair.features, bound=their_pair.bound)
        assert their_pair == dataclasses.replace(
            pair, imported=True, receipts=(), created=their_pair.created, features=features,
            slow_hash=their_pair.slow_hash, fast_hash=their_pair.fast_hash,
        )  # fmt: skip
        assert theirs.similar(pair.features)[0].pair.id == pair.id
        theirs.add_pair(pair)
        assert not theirs.pairs()[0].imported, "their own acceptance stands for the file"


def test_branches_that_add_pairs_merge_without_duplicates(
    project: Path, tmp_path: Path, make_pair: Callable[..., Pair]
) -> None:
    for branch, numbers in (("one", (0, 1)), ("two", (1, 2))):
        (tmp_path / branch).mkdir()
        with Memory.open(tmp_path / f"{branch}.db", project=tmp_path / branch) as memory:
            for number in numbers:
                memory.add_pair(make_pair(number))
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / b / FOLDER).iterdir()} for b in ("one", "two"))
    assert len(one | two) == 3
    assert all(one[name] == two[name] for name in one.keys() & two.keys()), "the same change, the same bytes"
    shutil.copytree(tmp_path / "one" / FOLDER, project / FOLDER)
    shutil.copytree(tmp_path / "two" / FOLDER, project / FOLDER, dirs_exist_ok=True)
    with Memory.open(tmp_path / "m.db", project=project) as memory:
        memory.refresh()
        assert len(memory.pairs()) == 3
        memory.forget(make_pair(0).id)
        (project / FOLDER / f"{make_pair(1).id}.json").unlink()
        memory.refresh()
        assert [p.id for p in memory.pairs()] == _files(project) == [make_pair(2).id]


def test_a_file_that_is_no_pair_is_told_and_the_others_are_read(
    project: Path, tmp_path: Path, make_pair: Callable[..., Pair]
) -> None:
    pair, other = make_pair(), make_pair(1)
    with Memory.open(tmp_path / "mine.db", project=project) as mine:
        mine.add_pair(pair)
        mine.add_pair(other)
    folder = project / FOLDER
    plain = json.loads((folder / f"{pair.id}.json").read_text())
    (folder / f"{pair.id}.json").write_text(json.dumps({**plain, "fast_text": ["other"]}))
    (folder / "deep.json").write_text("[" * 100_000)
    (folder / "conflict.json").write_text("<<<<<<< HEAD\n")
    (folder / "kernel.json").write_text(json.dumps({**plain, "kernel": 3}))
    (folder / "link.json").symlink_to("/etc/passwd")
    (folder / "folder.json").mkdir()
    with Memory.open(tmp_path / "theirs.db", project=project) as theirs:
        assert len(theirs.refresh()) == 6
        assert [p.id for p in theirs.pairs()] == [other.id]


def test_a_memory_that_keeps_nothing_works_while_it_is_open(make_pair: Callable[..., Pair]) -> None:
    with Memory.open(NOWHERE) as memory:
        memory.add_pair(make_pair())
        assert len(memory.similar(make_pair().features)) == 1
    assert not NOWHERE.exists()
    assert Memory.open(NOWHERE).pairs() == []
