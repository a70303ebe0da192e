"""A text that is saved or opened can undo what was accepted; one that is opened may be of an older commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelopt_lsp.service import local
from accelopt_lsp.service.protocol import FileRequest
from accelopt_lsp.settings.load import load_settings
from accelopt_profiling.examination import examine


async def test_a_save_and_an_opening_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELOPT_DB", str(tmp_path / "memory.db"))
    noticed: list[tuple[str, float, bool]] = []

    def notice(memory: object, file: str, hashes: object, read_at: float, *, opened: bool) -> None:
        noticed.append((file, read_at, opened))

    monkeypatch.setattr("accelopt_agent.suggestions.accept.notice_undone", notice)
    file = FileRequest(examine(Path("/k.py"), "import triton\n"), load_settings())
    service = local.LocalService()
    try:
        await service.stored_searches(file)
        await service.stored_searches(file, saved=True)
        assert noticed == [("/k.py", file.read_at, True), ("/k.py", file.read_at, False)]
    finally:
        await service.close()
