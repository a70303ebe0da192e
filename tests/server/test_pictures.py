"""The charts that the server answers with, and when it tells that there are others."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from support.editor import Editor
from support.nki_kernels import SILU
from support.scripted_kernels import KERNELS

pytestmark = pytest.mark.slow


async def pictures(editor: Editor, argument: dict[str, Any]) -> dict[str, Any]:
    return dict(await editor.execute("pictures", argument))


def names(answer: dict[str, Any]) -> list[str]:
    return [chart["name"] for chart in answer["charts"]]


def notifications(editor: Editor) -> list[Any]:
    """Return the list to which each notification about pictures is added."""
    heard: list[Any] = []

    @editor.feature("accelopt/pictures")
    def tell(params: Any) -> None:
        heard.append(params)

    return heard


async def test_of_the_kernel_named_at_the_line_or_the_first(editor: Editor, tmp_path: Path) -> None:
    told = notifications(editor)
    await editor.begin("vscode", tmp_path, pictures=True)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "900 us")
    assert told == [], "nobody has asked for pictures"
    first = await pictures(editor, {"uri": uri})
    assert (
        first["kernel"]
        == first["title"]
        == (await pictures(editor, {"uri": uri, "kernel": "silu"}))["kernel"]
    )
    assert "est. 900 us" in first["note"]
    assert (await pictures(editor, {"uri": uri, "line": 14}))["kernel"] == "silu"
    assert (await pictures(editor, {"uri": uri, "kernel": "absent"}))["charts"] == []
    assert (await pictures(editor, {"uri": "file:///absent.py"}))["charts"] == []

    assert first["schedule"]
    await editor.execute("profile", {"uri": uri, "timeline": True})
    assert not (await pictures(editor, {"uri": uri}))["schedule"], "asked for once, whatever comes of it"

    editor.replace(uri, "COST = 900", "COST = 450")
    await editor.until(lambda: bool(told), "word of an older result")
    answer = await pictures(editor, {"uri": uri})
    assert answer["note"].startswith("Before this edit: ")
    editor.save(uri)
    await editor.title(uri, "450 us")
    (history,) = [
        chart for chart in (await pictures(editor, {"uri": uri}))["charts"] if chart["name"] == "history"
    ]
    assert [row[0] for row in history["rows"]] == ["save 1", "save 2, shown"]


async def test_the_schedule_is_there_from_when_it_was_asked_for_until_it_is_shown_no_more(
    real: Editor, tmp_path: Path
) -> None:
    """Each profile between has it, also of a text that is known already."""
    editor = real
    await editor.begin("vscode", tmp_path, pictures=True)
    uri = editor.open(tmp_path / "k.py", SILU)
    await editor.title(uri, "est.")

    async def has_engines() -> bool:
        answer = await pictures(editor, {"uri": uri})
        return not answer["schedule"] and names(answer) == ["roofline", "lines", "busy", "engines"]

    answer = await pictures(editor, {"uri": uri})
    assert (answer["schedule"], names(answer)) == (True, ["roofline", "lines"])
    await editor.execute("profile", {"uri": uri, "timeline": True})
    await editor.until(has_engines, "the engines")
    editor.save(uri)
    await editor.until(has_engines, "the engines of a text that is known")

    await editor.execute("pictures", {"uri": uri, "shown": False})
    editor.replace(uri, "COLUMNS = 128", "COLUMNS = 512")
    editor.save(uri)

    async def profiled_again() -> bool:
        shown = " ".join(await editor.titles(uri))
        return "than last save" in shown and "profiling" not in shown and "checking" not in shown

    await editor.until(profiled_again, "the other version, profiled to the end")
    answer = await pictures(editor, {"uri": uri})
    assert (answer["schedule"], names(answer)) == (True, ["roofline", "lines", "history"])


async def test_a_search_is_a_tree_of_versions_that_can_be_looked_at(editor: Editor, tmp_path: Path) -> None:
    told = notifications(editor)
    await editor.begin("vscode", tmp_path, pictures=True)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "900 us")
    assert "search" not in names(await pictures(editor, {"uri": uri}))
    await editor.execute("optimize", {"uri": uri, "kernel": "silu"})
    await editor.title(uri, "1 checked")

    async def tree() -> dict[str, Any] | None:
        answer = await pictures(editor, {"uri": uri})
        return next((chart for chart in answer["charts"] if chart["name"] == "search"), None)

    chart = await editor.until(tree, "the search")
    assert told, "who shows the charts is told that there is another one"
    (version,) = (await editor.execute("versions", {"uri": uri}))["versions"]
    assert list(chart["versions"]) == ["", version["id"]]
    assert [row[:2] for row in chart["rows"]] == [["1", ""], ["2", "1"]]


@pytest.mark.parametrize("trusted", [True, False])
async def test_commits_stand_in_the_history_of_a_trusted_folder(
    editor: Editor, tmp_path: Path, trusted: bool
) -> None:
    def git(*command: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(tmp_path), *who, *command], check=True, capture_output=True)

    path = tmp_path / "k.py"
    git("init", "-q")
    await editor.begin("vscode", tmp_path, pictures=True, trusted=trusted)
    uri = editor.open(path, KERNELS)
    if not trusted:
        await editor.title(uri, "is not trusted")
        assert (await pictures(editor, {"uri": uri}))["charts"] == []
        return
    await editor.title(uri, "900 us")
    assert names(await pictures(editor, {"uri": uri}))
    path.write_text(KERNELS)
    git("add", "k.py")
    git("commit", "-q", "-m", "the first version")
    second = int(time.time())  # git counts in seconds: the next version is of a later one
    await editor.until(lambda: int(time.time()) > second, "the next second")
    editor.replace(uri, "COST = 900", "COST = 450")
    editor.save(uri)

    async def committed() -> bool:
        charts = (await pictures(editor, {"uri": uri}))["charts"]
        rows = [row[0] for chart in charts if chart["name"] == "history" for row in chart["rows"]]
        return len(rows) == 2 and "the first version" in rows[0]

    await editor.until(committed, "the commit at the first save")


async def test_who_asks_before_the_file_is_read_is_told_of_its_charts(editor: Editor, tmp_path: Path) -> None:
    """As a panel that was open when the server was started again."""
    told = notifications(editor)
    await editor.begin("vscode", tmp_path, pictures=True)
    uri = (tmp_path / "k.py").as_uri()
    assert names(await pictures(editor, {"uri": uri, "kernel": "silu"})) == []
    editor.open(tmp_path / "k.py", KERNELS)

    async def shown() -> bool:
        return (
            any(note.uri == uri for note in told)
            and names(await pictures(editor, {"uri": uri, "kernel": "silu"})) != []
        )

    await editor.until(shown, "the charts")
