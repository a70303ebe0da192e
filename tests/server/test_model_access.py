"""The editor's own models over LSP: asked after a click and never else, with every fault, taken back on cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lsprotocol.types as t
import pytest
from support.editor import Editor
from support.scripted_kernels import KERNELS

ASKING = KERNELS.replace("import", "ASK = 1\nimport", 1)
METHOD = "accelopt/model/complete"


def lend(editor: Editor, answer: Callable[[Any], Any]) -> list[Any]:
    """Let the editor's model ``answer``; the questions that came."""
    questions: list[Any] = []

    @editor.feature(METHOD)
    async def complete(params: Any) -> Any:
        questions.append(params)
        reply = answer(params)
        return await reply if asyncio.iscoroutine(reply) else reply

    return questions


async def opened(editor: Editor, path: Path, **options: Any) -> str:
    await editor.begin("vscode", path.parent, languageModels=True, **options)
    uri = editor.open(path, ASKING)
    await editor.title(uri, "est. 300 us")
    return uri


async def test_a_click_asks_and_a_save_does_not(editor: Editor, tmp_path: Path) -> None:
    questions = lend(editor, lambda params: {"text": "wide", "tokensIn": 5, "tokensOut": 1})
    uri = await opened(editor, tmp_path / "k.py")
    editor.replace(uri, "COST = 300", "COST = 400")
    editor.save(uri)
    await editor.title(uri, "est. 400 us")
    assert questions == []
    await editor.execute("optimize", {"uri": uri, "kernel": "silu"})
    message = await editor.message("The model:")
    assert "text='wide', tokens_in=5, tokens_out=1, fault=''" in message
    (question,) = questions
    assert (question.model, question.system, question.user) == ("acme/large", "You plan.", "The kernel silu")
    assert question.answerTokens == 100
    assert "your kernel" in question.justification


#: What a client may answer, and what the search is told.
ANSWERS: list[tuple[Any, str]] = [
    ({"fault": "no-permission", "message": "denied"}, "fault='no-permission', message='denied'"),
    ({"fault": "no-model", "message": "it has a/b"}, "fault='no-model', message='it has a/b'"),
    ({"fault": "blocked", "message": "quota"}, "fault='blocked', message='quota'"),
    ({"fault": "cancelled"}, "fault='cancelled'"),
    (
        {"fault": "odd", "text": "half", "tokensIn": True},
        "text='half', tokens_in=None, tokens_out=None, fault='failed'",
    ),
    ({"text": 3}, "what is no answer"),
    (None, "what is no answer"),
    (["text"], "what is no answer"),
]


@pytest.mark.slow
async def test_whatever_the_editor_answers_the_search_ends_well(editor: Editor, tmp_path: Path) -> None:
    answers = [answer for answer, _ in ANSWERS]
    questions = lend(editor, lambda params: answers.pop(0))
    uri = await opened(editor, tmp_path / "k.py")
    for _, says in ANSWERS:
        await editor.execute("optimize", {"uri": uri, "kernel": "silu"})
        assert says in await editor.message("The model:")
        editor.messages.clear()
        await over(editor, uri)
    assert len(questions) == len(ANSWERS)


@pytest.mark.slow
async def test_a_client_that_does_not_know_the_request_is_a_fault(
    editor: Editor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editor, "report_server_error", lambda error, source: None)
    uri = await opened(editor, tmp_path / "k.py")
    await editor.execute("optimize", {"uri": uri, "kernel": "silu"})
    assert "fault='failed'" in await editor.message("The model:")


async def over(editor: Editor, uri: str) -> None:
    async def look() -> bool:
        return all("Cancel" not in title for title in await editor.titles(uri))

    await editor.until(look, "the end of the search")


@pytest.mark.slow
async def test_a_client_that_lends_nothing_is_not_asked(editor: Editor, tmp_path: Path) -> None:
    questions = lend(editor, lambda params: {"text": "wide"})
    await editor.begin("neovim", tmp_path)
    uri = editor.open(tmp_path / "k.py", ASKING)
    await editor.execute("optimize", {"uri": uri, "kernel": "silu"})
    assert "fault='unsupported'" in await editor.message("The model:")
    assert questions == []


@pytest.mark.slow
async def test_cancelling_the_search_takes_the_question_back(editor: Editor, tmp_path: Path) -> None:
    gone = asyncio.Event()

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            gone.set()
            raise

    questions = lend(editor, lambda params: never())
    uri = await opened(editor, tmp_path / "k.py")
    await editor.execute("optimize", {"uri": uri, "kernel": "silu"})

    async def came() -> bool:
        return bool(questions)

    await editor.until(came, "the question")
    await editor.execute("cancel", {"uri": uri})
    await asyncio.wait_for(gone.wait(), editor.patience)


CONFIGURED = {"model": {"base_url": "editor", "model": "acme/large"}}


@pytest.mark.slow
async def test_the_person_is_asked_once_before_anything_is_sent(
    editor: Editor, tmp_path: Path, environment: dict[str, str]
) -> None:
    """Not now: not again in this session. The scripted service searches all the same."""
    lend(editor, lambda params: {"text": "wide"})
    uri = await opened(editor, tmp_path / "k.py", settings=CONFIGURED)
    editor.answers = ["Not now"]
    for _ in range(2):
        await editor.execute("optimize", {"uri": uri, "kernel": "silu"})
        await editor.message("The model:")
        editor.messages.clear()
        await over(editor, uri)
    (question,) = await editor.await_questions()
    assert "be sent to acme/large of this editor" in question.message
    assert "the whole file" in question.message
    reports = [
        report
        for progress in editor.progress_reports.values()
        for report in progress
        if isinstance(report, t.WorkDoneProgressReport)
    ]
    assert any("waiting for your answer" in (report.message or "") for report in reports)
    assert all(report.percentage is not None for report in reports), "VS Code shows no report without one"
    assert [item.title for item in question.actions or []] == ["Send it from now on", "Not now"]
    assert not Path(environment["ACCELOPT_CONSENTS"]).exists()


@pytest.mark.slow
async def test_one_question_is_open_and_a_late_answer_counts(
    editor: Editor, tmp_path: Path, environment: dict[str, str]
) -> None:
    """The search that asked is cancelled, another one waits for the same answer; who closes the question is asked
    again."""
    lend(editor, lambda params: {"text": "wide"})
    uri = await opened(editor, tmp_path / "k.py", settings=CONFIGURED)
    await editor.execute("optimize", {"uri": uri, "kernel": "silu"})
    await editor.message("The model:")
    editor.messages.clear()
    await over(editor, uri)
    answer = editor.hold_answers()
    editor.answers = ["Send it from now on"]
    await editor.execute("optimize", {"uri": uri, "kernel": "silu"})

    await editor.await_questions(2)
    await editor.execute("cancel", {"uri": uri})
    await over(editor, uri)
    await editor.execute("optimize", {"uri": uri, "kernel": "silu"})
    answer.set()
    await editor.message("The model:")
    assert len(editor.questions) == 2
    assert '"the models of the editor"' in Path(environment["ACCELOPT_CONSENTS"]).read_text()


@pytest.mark.slow
async def test_what_was_agreed_is_kept(editor: Editor, tmp_path: Path, environment: dict[str, str]) -> None:
    lend(editor, lambda params: {"text": "wide"})
    uri = await opened(editor, tmp_path / "k.py", settings=CONFIGURED)
    editor.answers = ["Send it from now on"]
    for _ in range(2):
        await editor.execute("optimize", {"uri": uri, "kernel": "silu"})
        await editor.message("The model:")
        editor.messages.clear()
        await over(editor, uri)
    assert len(editor.questions) == 1
    assert '"the models of the editor"' in Path(environment["ACCELOPT_CONSENTS"]).read_text()


@pytest.mark.slow
async def test_no_question_without_trust(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path, languageModels=True, trusted=False, settings=CONFIGURED)
    uri = editor.open(tmp_path / "k.py", ASKING)
    answer = await editor.execute("optimize", {"uri": uri, "kernel": "silu"})
    assert answer["job"] is None
    assert editor.questions == []
