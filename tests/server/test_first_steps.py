"""What a first run asks the server: the installation, a host, a model, an example, and which steps are true."""

from __future__ import annotations

import json
from pathlib import Path

import lsprotocol.types as t
import pytest
from support.editor import Editor
from support.played_model import error, playing, says
from support.scripted_kernels import KERNELS

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]


async def test_the_doctor_says_what_is_there_and_how_to_mend_the_rest(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    checks = {check["name"]: check for check in (await editor.execute("doctor", {}))["checks"]}
    assert checks["Python"]["state"] == "ok"
    assert checks["model"]["state"] == "absent"


async def test_an_example_is_opened_in_a_folder_that_is_trusted_then(
    editor: Editor, tmp_path: Path, environment: dict[str, str]
) -> None:
    await editor.begin("vscode", tmp_path)
    answer = await editor.execute("openExample", {"id": "triton"})
    path = Path(answer["uri"].removeprefix("file://"))
    assert "@triton.jit" in path.read_text()
    assert (path.parent / "triton_softmax_problem.py").exists()
    assert json.loads(Path(environment["ACCELOPT_APPROVALS"]).read_text())["trusted"] == [str(path.parent)]
    path.write_text("# mine\n")
    await editor.execute("openExample", {"id": "triton"})
    assert path.read_text() == "# mine\n"
    assert (await editor.execute("openExample", {"id": "cuda"}))["job"] is None
    await editor.message("There is no example 'cuda'")


async def test_a_host_that_does_not_answer_is_told_with_the_reason(editor: Editor, tmp_path: Path) -> None:
    lab = {"hosts": {"lab": {"ssh": "nobody@127.0.0.1", "python": "python3"}}}
    await editor.begin("vscode", tmp_path, settings=lab)
    answer = await editor.execute("testHost", {"id": "lab"})
    assert (answer["reachable"], bool(answer["error"])) == (False, True)
    assert (await editor.execute("testHost", {"id": "other"}))["job"] is None
    await editor.message("There is no host 'other'")


async def test_a_model_is_asked_one_question_without_code(editor: Editor, tmp_path: Path) -> None:
    with playing([says("ready"), error(401, "no such key")]) as played:
        model = {"base_url": played.url, "model": "toy"}
        await editor.begin("vscode", tmp_path, settings={"model": model})
        answer = await editor.execute("testModel", {})
        assert (answer["answer"], answer["fault"]) == ("ready", "")
        assert "ready" in json.dumps(played.asked[0])
        assert "refuses the key" in (await editor.execute("testModel", {}))["fault"]


async def test_steps_are_told_when_they_are_true(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path, status=True, settings={"target": {"triton": "a100"}})
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "est. 900 us")

    def reached() -> bool:
        return bool(editor.statuses) and editor.statuses[-1].reached == ["profiled", "target"]

    await editor.until(reached, "both steps")


async def test_open_documents_without_a_kernel_are_named(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path, status=True)
    kernels = editor.open(tmp_path / "k.py", KERNELS)
    plain = editor.open(tmp_path / "plain.py", "x = 1\n")
    await editor.title(kernels, "est. 900 us")

    def told(*uris: str) -> bool:
        return bool(editor.statuses) and editor.statuses[-1].plain == list(uris)

    await editor.until(lambda: told(plain), "the file without a kernel")
    editor.replace(plain, "x = 1\n", "@nki.jit\ndef x(:\n")  # what does not parse may hold one
    await editor.until(told, "no file")
    editor.replace(plain, "@nki.jit\ndef x(:\n", "x = 2\n")
    await editor.until(lambda: told(plain), "the file without a kernel again")
    editor.text_document_did_close(t.DidCloseTextDocumentParams(t.TextDocumentIdentifier(plain)))
    await editor.until(told, "no file after it was closed")


async def test_the_log_says_what_numbers_depend_on_and_how_long_each_save_took(
    editor: Editor, tmp_path: Path
) -> None:
    await editor.begin("vscode", tmp_path, settings={"target": {"triton": "a100"}})
    await editor.title(editor.open(tmp_path / "k.py", KERNELS), "est. 900 us")

    def line(has: str) -> bool:
        return any(has in m.message for m in editor.log_messages)

    await editor.until(lambda: line("targets: a100 (Triton)"), "version, interpreter and target")
    await editor.until(lambda: line("k.py: 2 of 2 kernels for trn1 in "), "the time of the profile")


async def test_settings_that_an_editor_is_asked_for_replace_those_that_it_began_with(
    editor: Editor, tmp_path: Path
) -> None:
    """As VS Code sends them: what is not set is null, so that what is set back counts at once."""
    editor.set_configuration(
        {"target": {"triton": "a100", "nki": None}, "model": {"base_url": None}}, section="accelopt"
    )
    began = {"target": {"triton": "h200", "nki": None}, "model": {"base_url": "http://localhost:1/v1"}}
    await editor.begin("vscode", tmp_path, status=True, settings=began)

    def target() -> bool:
        return bool(editor.statuses) and editor.statuses[-1].target.startswith("a100 ")

    await editor.until(target, "the target that the editor was asked for")


async def test_a_search_begins_with_the_settings_that_were_chosen_just_before(
    editor: Editor, tmp_path: Path
) -> None:
    nothing = {"model": {"base_url": None, "model": None}}
    editor.set_configuration(nothing, section="accelopt")
    await editor.begin("vscode", tmp_path, languageModels=True, settings=nothing)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "est. 900 us")
    chosen = {"model": {"base_url": "editor", "model": "toy/tidy"}}
    editor.set_configuration(chosen, section="accelopt")
    editor.workspace_did_change_configuration(t.DidChangeConfigurationParams({"accelopt": chosen}))
    await editor.execute("optimize", {"uri": uri})
    (question,) = await editor.await_questions(1)
    assert "toy/tidy" in question.message
