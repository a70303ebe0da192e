"""Keep the settings that hold for each document, and read them again after something changed them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelopt_lsp.settings.approvals import UnapprovedSettings
from accelopt_lsp.settings.layers import editor_settings
from accelopt_lsp.settings.load import Settings, load_settings
from accelopt_lsp.settings.trust import Workspace
from accelopt_lsp.state.signal import Signal
from accelopt_lsp.state.state_store import Document

if TYPE_CHECKING:
    from accelopt_lsp.server.server import AccelOptServer


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

    def known(self, path: str) -> Settings | None:
        """Return the settings for a file if they were read already: for answers that must not wait."""
        return self._known.get(path)

    def changed(self, editor: Mapping[str, Any] | None = None, workspace: Workspace | None = None) -> None:
        """Read the settings again when they are next needed; ``editor`` and ``workspace`` replace what the editor
        said of its settings and folders."""
        if editor is not None:
            self.editor = dict(editor)
        self.workspace = workspace or self.workspace
        self._known = {}


class SettingsSync:
    """Reads the settings again when they changed.

    ``read`` tells of every open document then, ``changed`` of the URI of each whose settings are others than before.
    """

    def __init__(self, server: AccelOptServer) -> None:
        self._editor, self._state, self._jobs = server.editor, server.state, server.jobs
        self._documents, self._configuration = server.documents, server.configuration
        self._status = server.status
        self.read: Signal[[Document]] = Signal()
        self.changed: Signal[[str]] = Signal()

    async def reconfigure(self, pushed: object = None) -> None:
        """Read the settings again: they, or the editor's part of them (``pushed``, where it sends them), changed."""
        editor: dict[str, Any] = dict(self._editor.client.settings)
        if self._editor.client.has("workspace", "configuration"):
            editor |= editor_settings(await self._editor.settings())
        elif isinstance(pushed, dict):
            editor |= editor_settings(pushed.get("accelopt"))
        before = {state.uri: self._configuration.known(state.path) for state in self._state.files()}
        self._configuration.changed(editor)
        roots = self._documents.folders or (Path.cwd(),)
        targets = [(await self._configuration.of(str(root / "kernel.py"))).target for root in roots]
        triton = " or ".join(dict.fromkeys(t.triton for t in targets))
        nki = " or ".join(dict.fromkeys(t.nki or "as the file needs" for t in targets))
        self._status.target = f"{triton} (Triton), {nki} (NKI)"
        self._status.update(self._jobs.running())
        for uri, settings in before.items():
            state = self._state.get(uri)
            if state is None:
                continue
            now = await self._configuration.of(state.path)
            if (file := self._state.get(uri)) is not None:
                self._state.put(replace(file, untrusted=now.untrusted))
            self.read(state)
            if settings is not None and now != settings:
                self.changed(uri)
