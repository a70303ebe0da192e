"""The editor of the tour ends with a sentence where its server has ended, or hangs."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from accelopt_lsp.demo import editor as tour
from accelopt_lsp.demo.editor import Editor, EditorError


@pytest.mark.parametrize(
    ("number", "message"), [(signal.SIGKILL, "The server is gone"), (signal.SIGSTOP, "did not answer within")]
)
async def test_no_request_waits_for_a_server_that_will_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, message: str
) -> None:
    kernel = tmp_path / "k.py"
    kernel.write_text("x = 1\n")
    editor = Editor(tmp_path, tmp_path / "memory.db")
    await editor.start()
    uri = editor.open(kernel)
    assert await editor.lenses(uri) == []
    server = editor._client._server
    assert server is not None
    if number == signal.SIGSTOP:
        monkeypatch.setattr(tour, "_ANSWER", 0.5)
    server.send_signal(number)
    await asyncio.sleep(0.2)
    for request in (editor.lenses(uri), editor.hints(uri), editor.hover(uri, 1), editor.stop()):
        with pytest.raises(EditorError, match=message):
            await request
    if server.returncode is None:
        server.kill()
        await server.wait()
