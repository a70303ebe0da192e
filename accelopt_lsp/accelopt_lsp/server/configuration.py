"""The settings that hold for a document, read when first needed and again after something changed them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from accelopt_lsp.settings.load import Settings, load_settings

#: Settings of the VS Code extension itself, beside the server's in the section ``accelopt``.
_OF_THE_CLIENT = frozenset({"interpreter", "trace"})


class Configuration:
    """``editor`` are the editor's ``accelopt.*``. Each complaint is told once, through ``complain``."""

    def __init__(self, complain: Callable[[str], None]) -> None:
        self.editor: dict[str, Any] = {}
        self.trusted = True
        self._complain = complain
        self._complained: set[str] = set()
        self._known: dict[Path, Settings] = {}

    async def of(self, path: str) -> Settings:
        """The settings for a file."""
        folder = Path(path).parent
        if folder not in self._known:
            editor, trusted = dict(self.editor), self.trusted
            settings = await asyncio.to_thread(load_settings, Path(path), editor=editor, trusted=trusted)
            self._known[folder] = settings
            for complaint in map(str, settings.complaints):
                if complaint not in self._complained:
                    self._complained.add(complaint)
                    self._complain(f"Settings: {complaint}")
        return self._known[folder]

    def known(self, path: str) -> Settings | None:
        """The settings for a file if they were read already: for answers that must not wait."""
        return self._known.get(Path(path).parent)

    def changed(self, editor: Mapping[str, Any] | None = None) -> None:
        """Read the settings again when they are next needed; ``editor`` replaces the editor's part."""
        if editor is not None:
            self.editor = dict(editor)
        self._known.clear()


def editor_settings(section: object) -> dict[str, Any]:
    """The server's settings in what an editor sends as its section ``accelopt``: under ``settings``, or flat."""
    if not isinstance(section, dict):
        return {}
    inner = section.get("settings")
    flat = {k: v for k, v in section.items() if k not in _OF_THE_CLIENT and k != "settings"}
    return {**flat, **inner} if isinstance(inner, dict) else flat
