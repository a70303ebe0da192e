"""A text that is saved can undo what was accepted; one that is opened may be of an older commit and does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelopt_lsp.backend import local
from accelopt_lsp.backend.protocol import FileText
from accelopt_lsp.settings.load import load_settings
from accelopt_profiling.examination import examine


async def test_only_a_save_undoes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELOPT_DB", str(tmp_path / "memory.db"))
    undone: list[str] = []
    monkeypatch.setattr(local, "notice_undone", lambda memory, file, hashes: undone.append(file))
    file = FileText(examine(Path("/k.py"), "import triton\n"), load_settings())
    backend = local.LocalBackend()
    try:
        await backend.stored_searches(file)
        assert undone == []
        await backend.stored_searches(file, saved=True)
        assert undone == ["/k.py"]
    finally:
        await backend.close()
