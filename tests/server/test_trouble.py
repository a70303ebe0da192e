"""Bad input, hosts that are down, bugs: one clear diagnostic or message each, and the next save works."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lsprotocol.types as t
import pytest
from support.editor import Editor
from support.scripted_kernels import KERNELS

from accelopt_lsp.server.limit_fix import LimitFix
from accelopt_lsp.server.new_files import first_size
from accelopt_lsp.service.protocol import FileRequest
from accelopt_lsp.settings.load import load_settings
from accelopt_lsp.state.jobs import JobRegistry
from accelopt_profiling.examination import examine
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.problems.discovery.template import problem_template


async def works_again(editor: Editor, uri: str) -> None:
    """After the trouble: an ordinary text, saved, is profiled."""
    editor.set_text(uri, KERNELS.replace("COST = 900", "COST = 500"))
    editor.save(uri)
    await editor.title(uri, "est. 500 us")


@pytest.mark.slow
async def test_a_file_that_does_not_parse(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "est. 900 us")
    editor.replace(uri, "COST = 900", "COST = = 900")
    editor.save(uri)
    diagnostic = await editor.diagnostic(uri, "syntax-error")
    assert diagnostic.range.start.line == 13
    assert "does not parse" in diagnostic.message
    assert "does not parse, line 14 · before this edit: est. 900 us" in await editor.title(
        uri, "before this edit"
    )
    assert editor.messages == []
    await works_again(editor, uri)
    await editor.no_diagnostic(uri, "syntax-error")


@pytest.mark.slow
async def test_a_file_that_is_not_text(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    path = tmp_path / "k.py"
    path.write_bytes(KERNELS.replace("# moved", "").encode() + b"# caf\xe9\n")
    uri = editor.open(path)
    diagnostic = await editor.diagnostic(uri, "not-text")
    assert diagnostic.range.start.line == KERNELS.count("\n")
    assert "0xe9" in diagnostic.message
    assert await editor.title(uri, "not profiled")
    await works_again(editor, uri)
    await editor.no_diagnostic(uri, "not-text")


@pytest.mark.slow
async def test_latin_1_that_says_so_is_text(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    path = tmp_path / "k.py"
    path.write_bytes(b"# -*- coding: latin-1 -*-\n# caf\xe9\n" + KERNELS.encode())
    uri = editor.open(path)
    await editor.title(uri, "est. 900 us")
    assert editor.diagnostics.get(uri, []) == []


@pytest.mark.slow
async def test_crlf(editor: Editor, tmp_path: Path, decisions: Path) -> None:
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS.replace("\n", "\r\n"))
    await editor.title(uri, "est. 900 us")
    await editor.execute("optimize", {"uri": uri, "kernel": "silu"})
    action = await editor.action(uri, 13, "Halve the cost")
    assert isinstance(action, t.CodeAction)
    resolved = await editor.code_action_resolve_async(action)
    assert resolved.edit is not None
    assert editor.apply(resolved.edit)
    assert editor.texts[uri] == KERNELS.replace("COST = 900", "COST = 450").replace("\n", "\r\n")


@pytest.mark.slow
async def test_two_kernels_of_one_name(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS.replace("def gelu", "def silu"))
    diagnostic = await editor.diagnostic(uri, "duplicate-kernel")
    assert diagnostic.range.start.line == 18
    await editor.title(uri, "est. 900 us")
    await editor.title(uri, "est. 300 us")


@pytest.mark.slow
async def test_a_limit_that_ended_a_run_can_be_raised(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"# \xff is not text")
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS + "\nTIMEOUT = 1\n")
    diagnostic = await editor.diagnostic(uri, "timeout")
    assert diagnostic.severity is t.DiagnosticSeverity.Information
    action = await editor.action(uri, diagnostic.range.start.line + 1, "Raise the limit limits.seconds")
    assert isinstance(action, t.CodeAction)
    assert [d.code for d in action.diagnostics or []] == ["timeout"]
    assert action.command is not None
    await editor.execute("raiseLimit", *(action.command.arguments or []))
    await editor.message("accelopt.toml was written")
    assert (tmp_path / "accelopt.toml").read_text() == "[limits]\nseconds = 240\n"
    await editor.execute("raiseLimit", uri)
    await editor.message("below [limits]")


@pytest.mark.slow
async def test_no_problem_is_said_once_with_a_way_out(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    text = KERNELS.replace("def get_inputs", "def nothing")
    uri = editor.open(tmp_path / "k.py", text)
    diagnostic = await editor.diagnostic(uri, "no-problem")
    assert diagnostic.severity is t.DiagnosticSeverity.Information
    assert [d.code for d in editor.diagnostics[uri]] == ["no-problem"]
    action = await editor.action(uri, diagnostic.range.start.line + 1, "Create a problem file")
    assert isinstance(action, t.CodeAction)
    assert action.kind == "quickfix.accelopt"
    assert [d.code for d in action.diagnostics or []] == ["no-problem"]
    assert action.command is not None
    await editor.execute("createProblem", *(action.command.arguments or []))
    await editor.message("k_problem.py was written")
    written = (tmp_path / "k_problem.py").read_text()
    compile(written, "k_problem.py", "exec")
    kernel = find_kernels(text).kernels[0]
    assert written == problem_template(text, kernel), (
        "with what the file tells of its functions and their arguments"
    )
    assert f'entry = "{kernel.name}"' in written
    assert "def reference" not in written, "a reference is never guessed"
    assert editor.shown_documents[-1].uri == (tmp_path / "k_problem.py").as_uri()
    await editor.execute("createProblem", uri)
    await editor.message("exists already")
    assert (tmp_path / "k_problem.py").read_text() == written


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ('entry = "k"\n\n\ndef get_inputs(num_tokens=2048, topk=2):\n    return []\n', (3, 26, 30)),
        ("def get_inputs():\n    x = np.zeros((128, 512), np.float32)\n    return [x]\n", (1, 18, 21)),
    ],
)
def test_the_cursor_stands_on_the_first_size_of_a_written_problem(
    text: str, at: tuple[int, int, int]
) -> None:
    assert first_size(text) == at
    assert first_size("def reference(x):\n    return x + 128\n") is None


@pytest.mark.slow
async def test_a_host_that_is_down_is_said_in_the_status_only(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path, status=True)
    uri = editor.open(tmp_path / "k.py", KERNELS + "\nDOWN = 1\n")

    async def down() -> bool:
        return bool(editor.statuses) and editor.statuses[-1].state == "host-unreachable"

    await editor.until(down, "the status")
    assert "connection refused" in editor.statuses[-1].detail
    editor.save(uri)
    await editor.until(down, "the status")
    assert editor.messages == []
    await editor.execute("optimize", {"uri": uri, "kernel": "silu"})
    await editor.message("cannot be reached")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "says"),
    [("REFUSE", "The scripted service refuses."), ("BUG", "RuntimeError: a bug in the service")],
)
async def test_a_backend_that_fails(editor: Editor, tmp_path: Path, word: str, says: str) -> None:
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", f"{KERNELS}\n{word} = 1\n")
    await editor.message(says)
    await works_again(editor, uri)


@pytest.mark.slow
async def test_a_file_deleted_while_it_is_profiled(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    path = tmp_path / "k.py"
    uri = editor.open(path, KERNELS + "\nHOLD = 1\n")
    await editor.title(uri, "profiling...")
    path.unlink()
    event = t.FileEvent(uri, t.FileChangeType.Deleted)
    editor.workspace_did_change_watched_files(t.DidChangeWatchedFilesParams([event]))
    await editor.message("was deleted; what ran for it was stopped")
    await works_again(editor, uri)


@pytest.mark.slow
async def test_twenty_thousand_lines(editor: Editor, tmp_path: Path) -> None:
    """Opened, edited and saved; answers stay quick because another process reads the text."""
    await editor.begin("vscode", tmp_path)
    filler = "".join(f"value_{i} = [{i}, 'text {i}']\n" for i in range(20_000))
    uri = editor.open(tmp_path / "k.py", KERNELS + filler)
    await editor.title(uri, "est. 900 us")
    editor.replace(uri, "COST = 900", "COST = 700")
    editor.save(uri)
    await editor.title(uri, "est. 700 us")


async def test_an_untrusted_workspace_runs_nothing(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path, trusted=False, status=True)
    text = KERNELS.replace("def gelu", "def silu")
    uri = editor.open(tmp_path / "k.py", text)
    await editor.diagnostic(uri, "duplicate-kernel")
    editor.save(uri)
    title = await editor.title(uri, "not trusted")
    assert title == f"not profiled: {tmp_path} is not trusted"
    assert {title} == set(await editor.titles(uri))
    for name in ("profile", "optimize"):
        answer = await editor.execute(name, uri)
        assert answer["job"] is None
    await editor.message("not trusted")
    assert {status.state for status in editor.statuses} == {"untrusted"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("profile", [], "needs a document"),
        ("profile", [7], "takes one object or a document URI"),
        ("profile", [{"uri": 7}], "`uri` must be str"),
        ("accept", [{}], "named by its id"),
        ("accept", ["nope"], "There is no suggestion nope"),
        ("reject", [{"id": "nope"}], "There is no suggestion nope"),
        ("optimize", [{"uri": "file:///not/there.py"}], "/not/there.py does not exist"),
        ("profile", ["untitled:Untitled-1"], "is not a file"),
    ],
)
async def test_wrong_arguments(
    editor: Editor, tmp_path: Path, name: str, arguments: list[Any], says: str
) -> None:
    await editor.begin("vscode", tmp_path)
    await editor.execute(name, *arguments)
    await editor.message(says)


@pytest.mark.slow
async def test_a_wrong_setting_is_said_once(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "accelopt.toml").write_text('target = {nki = "trn2"}\neditor = {lens = "perhaps"}\n')
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "on trn2")
    editor.save(uri)
    other = editor.open(tmp_path / "other.py", KERNELS)
    await editor.title(other, "on trn2")
    assert len([m for m in editor.messages if "editor.lens" in m.message]) == 1


@pytest.mark.slow
async def test_settings_of_the_editor(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("neovim", tmp_path, settings={"target": {"nki": "trn2"}, "editor": {"hints": False}})
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "on trn2")
    everything = t.Range(t.Position(0, 0), t.Position(99, 0))
    params = t.InlayHintParams(t.TextDocumentIdentifier(uri), everything)
    assert not await editor.text_document_inlay_hint_async(params)


@pytest.mark.slow
async def test_only_own_files_are_answered_for(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "plain.py", "def f(:\n")
    await editor.execute("cancel", uri)
    assert await editor.titles(uri) == []
    assert await editor.actions(uri, 1) == []
    assert editor.diagnostics.get(uri, []) == []


@pytest.mark.parametrize(
    ("before", "name", "layer", "says"),
    [
        (60.0, "seconds", "", "accelopt.toml was written: `seconds = 240`"),
        (40_000.0, "seconds", "", "accelopt.toml was written: `seconds = 86400`"),
        (86_400.0, "seconds", "", "is 86400, and no more than that can be set"),
        (1 << 21, "memory_mb", "", "accelopt.toml was written: `memory_mb = 4194304`"),
        (
            60.0,
            "seconds",
            "the editor's settings",
            "Set `limits.seconds = 240` (60 now) in the editor's settings",
        ),
        (60.0, "seconds", "the environment", "Set `limits.seconds = 240` (60 now) in the environment"),
        (60.0, "seconds", "your settings (/u.toml)", "accelopt.toml was written: `seconds = 240`"),
    ],
)
async def test_a_limit_is_raised_to_what_can_be_set_and_where_it_holds(
    tmp_path: Path, before: float, name: str, layer: str, says: str
) -> None:
    (tmp_path / ".git").mkdir()
    loaded = load_settings(tmp_path, environ={})
    settings = replace(
        loaded,
        limits=replace(loaded.limits, **{name: before}),
        origins={f"limits.{name}": layer} if layer else {},
    )
    file = FileRequest(examine(tmp_path / "k.py", KERNELS), settings)
    lines: list[str] = []

    class Files:
        async def read(self, uri: str) -> FileRequest:
            return file

    class Says:
        shows_files = False

        def say(self, line: str) -> None:
            lines.append(line)

    fix = LimitFix(SimpleNamespace(editor=Says(), jobs=JobRegistry(), files=Files()))  # type: ignore[arg-type]
    await fix._run("file:///k.py", name)
    assert [says in line for line in lines] == [True]
    written = tmp_path / "accelopt.toml"
    assert written.exists() == ("was written" in says)
    if written.exists():
        again = load_settings(tmp_path, environ={})
        assert (again.complaints, getattr(again.limits, name) > before) == ((), True)


@pytest.mark.slow
async def test_files_of_one_name_have_a_page_each(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path, pages=True)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        editor.open(tmp_path / folder / "softmax.py", KERNELS)
        await editor.execute("showRuns", (tmp_path / folder / "softmax.py").as_uri())

    async def both() -> bool:
        return len(set(editor.shown)) == 2

    await editor.until(both, "two pages")
