"""Keep the settings that hold for each document."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from accelopt_lsp.settings.approvals import UnapprovedSettings
from accelopt_lsp.settings.load import Settings, load_settings
from accelopt_lsp.settings.trust import Workspace
from accelopt_lsp.state.signal import Signal


class SettingsCache:
    """The settings per file. ``editor`` are the editor's ``accelopt.*``. Each complaint is told once, through
    ``complain``; ``unapproved`` tells what of a project's settings is not used."""

    def __init__(self, complain: Callable[[str], None]) -> None:
        self.editor: dict[str, Any] = {}
        self.workspace = Workspace()
        self.unapproved: Signal[[UnapprovedSettings]] = Signal()
        self._complain = complain
        self._complained: set[str] = set()
        self._known: dict[str, Settings] = {}

    async def of(self, path: str) -> Settings:
        """Return the settings for a file."""
        cache = self._known
        if path not in cache:
            editor, workspace = dict(self.editor), self.workspace
            settings = await asyncio.to_thread(load_settings, Path(path), editor=editor, workspace=workspace)
            if cache is not self._known:
                return await self.of(path)  # something changed meanwhile, perhaps what is trusted
            cache[path] = settings
            for complaint in map(str, settings.complaints):
                if complaint not in self._complained:
                    self._complained.add(complaint)
                    self._complain(f"Settings: {complaint}")
            if settings.unapproved is not None:
                self.unapproved(settings.unapproved)
        return cache[path]

    def cached(self, path: str) -> Settings | None:
        """Return the settings for a file if they were read already: for answers that must not wait."""
        return self._known.get(path)

    def changed(self, editor: Mapping[str, Any] | None = None, workspace: Workspace | None = None) -> None:
        """Read the settings again when they are next needed; ``editor`` and ``workspace`` replace what the editor
        said of its settings and folders."""
        if editor is not None:
            self.editor = dict(editor)
        self.workspace = workspace or self.workspace
        self._known = {}
