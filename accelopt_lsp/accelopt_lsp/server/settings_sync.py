"""Read the settings again after something changed them."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelopt_lsp.server.session import Session
from accelopt_lsp.settings.layers import editor_settings
from accelopt_lsp.settings.load import Settings
from accelopt_lsp.state.signal import Signal
from accelopt_lsp.state.state_store import Document
from accelopt_profiling import __version__
from accelopt_profiling.waiting import within

#: So long a command waits for the editor to say what its settings are now.
ANSWER_SECONDS = 5.0


class SettingsSync:
    """Reads the settings again when they changed.

    ``read`` tells of every open document then, ``changed`` of the URI of each whose settings are others than before.
    """

    def __init__(self, session: Session) -> None:
        self._editor, self._state, self._jobs = session.editor, session.state, session.jobs
        self._documents, self._configuration = session.documents, session.configuration
        self._status, self._noted = session.status, ""
        self._reading, self._settled = 0, asyncio.Event()
        self._settled.set()
        self.read: Signal[[Document]] = Signal()
        self.changed: Signal[[str]] = Signal()

    async def settled(self) -> None:
        """Wait until what the editor changed before is read, as long as an editor may take to say what."""
        with contextlib.suppress(asyncio.TimeoutError):
            await within(ANSWER_SECONDS, self._settled.wait())

    async def reconfigure(self, pushed: object = None) -> None:
        """Read the settings again: they, or the editor's part of them (``pushed``, where it sends them), changed."""
        self._reading += 1
        self._settled.clear()
        try:
            await self._reconfigure(pushed)
        finally:
            self._reading -= 1
            if not self._reading:
                self._settled.set()

    async def _reconfigure(self, pushed: object) -> None:
        editor: dict[str, Any] = dict(self._editor.client.settings)
        if self._editor.client.has("workspace", "configuration"):
            editor |= editor_settings(await self._editor.settings())
        elif isinstance(pushed, dict):
            editor |= editor_settings(pushed.get("accelopt"))
        before = {state.uri: self._configuration.cached(state.path) for state in self._state.files()}
        self._configuration.changed(editor)
        roots = self._documents.folders or (Path.cwd(),)
        settings_of_roots = [await self._configuration.of(str(root / "kernel.py")) for root in roots]
        targets = [settings.target for settings in settings_of_roots]
        chosen = any(
            {"target.triton", "target.nki"} & settings.origins.keys() for settings in settings_of_roots
        )
        asks = any(settings.asks_models for settings in settings_of_roots)
        self._status.reached -= {"target", "model"}
        if chosen:
            self._status.reached.add("target")
        if asks:
            self._status.reached.add("model")
        triton = " or ".join(dict.fromkeys(t.triton for t in targets))
        nki = " or ".join(dict.fromkeys(t.nki or "as the file needs" for t in targets))
        self._status.target = f"{triton} (Triton), {nki} (NKI)"
        self._note(settings_of_roots)
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

    def _note(self, settings: Sequence[Settings]) -> None:
        """Write to the editor's log what everything here depends on, once for each change."""
        pythons = " or ".join(dict.fromkeys(str(of_root.interpreter) for of_root in settings))
        hosts = " or ".join(dict.fromkeys(of_root.host for of_root in settings))
        line = (
            f"AccelOpt {__version__} on Python {sys.version.split()[0]} ({sys.executable}); kernels run on {hosts} "
            f"and see the packages of {pythons}; targets: {self._status.target}."
        )
        if line != self._noted:
            self._noted = line
            self._editor.note(line, "info")
