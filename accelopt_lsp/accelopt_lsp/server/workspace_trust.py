"""Ask the person what the editor did not say: whether the workspace is trusted, and whether the sensitive settings of
its file are to be used. Each answer is kept (``settings.approvals``), so each question comes once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from accelopt_lsp.server.configuration import SettingsCache
from accelopt_lsp.server.connection import EditorConnection, EditorRefusedError
from accelopt_lsp.server.documents import Documents
from accelopt_lsp.server.status import StatusLine
from accelopt_lsp.settings.approvals import Approvals, UnapprovedSettings
from accelopt_lsp.state.jobs import BackgroundTasks
from accelopt_lsp.state.state_store import StateStore

TRUST, APPROVE, NOT_NOW = "Trust this folder", "Use them", "Not now"


class WorkspaceTrust:
    """Trusts a workspace whose editor says nothing of trust when the person does, in an answer now or before.

    ``on_trusted`` is called with the URI of each open file when the workspace becomes trusted, ``reconfigure`` when
    other settings hold.
    """

    def __init__(
        self,
        editor: EditorConnection,
        state: StateStore,
        tasks: BackgroundTasks,
        documents: Documents,
        configuration: SettingsCache,
        status: StatusLine,
        on_trusted: Callable[[str], None],
        reconfigure: Callable[[], Awaitable[None]],
    ) -> None:
        self._editor, self._state, self._tasks, self._documents = editor, state, tasks, documents
        self._configuration, self._status = configuration, status
        self._on_trusted, self._reconfigure = on_trusted, reconfigure
        self._asked: set[str] = set()
        configuration.on_unapproved = self.unapproved

    async def begin(self) -> None:
        """Trust a workspace that the person trusted before."""
        if self._editor.client.trust_unsaid and await asyncio.to_thread(
            _approvals().trusts, self._documents.root
        ):
            await self._trust()

    def needed(self) -> None:
        """Ask, once, because something of an untrusted workspace would be run."""
        root = self._documents.root
        if self._editor.client.trust_unsaid and self._first(str(root)):
            question = (
                f"Do you trust the files in {root}? AccelOpt runs its kernels in a sandbox, and a Python environment "
                "of that folder with your permissions."
            )
            advice = f"Nothing of {root} is run: your editor did not say it is trusted. `accelopt trust {root}` can."
            self._tasks.start(self._ask(question, TRUST, advice, lambda: self._given(root)))

    def unapproved(self, found: UnapprovedSettings) -> None:
        """Ask, once, about sensitive settings of the project that are not used."""
        if self._editor.client.trusted and self._first(f"{found.folder}\0{found}"):
            question = (
                f"The settings of the project in {found.folder} name programs, hosts or models, or what is sent to "
                f"them: {found}. Use them?"
            )
            advice = (
                f"Settings: not used until you approve them with `accelopt trust {found.folder}`: {found}"
            )
            self._tasks.start(self._ask(question, APPROVE, advice, lambda: self._approved(found)))

    def _first(self, what: str) -> bool:
        first = what not in self._asked
        self._asked.add(what)
        return first

    async def _ask(self, question: str, yes: str, advice: str, then: Callable[[], Awaitable[None]]) -> None:
        if not self._editor.asks:
            self._editor.say(advice, "warning")
            return
        try:
            if await self._editor.ask(question, [yes, NOT_NOW]) == yes:
                await then()
        except EditorRefusedError:
            self._editor.say(advice, "warning")
        except OSError as error:
            self._editor.say(f"Your answer cannot be kept: {error}.", "warning")

    async def _given(self, root: Path) -> None:
        await asyncio.to_thread(_approvals().give, root, trust=True)
        await self._trust()

    async def _approved(self, found: UnapprovedSettings) -> None:
        await asyncio.to_thread(_approvals().give, found.folder, found.values)
        await self._reconfigure()

    async def _trust(self) -> None:
        self._editor.client = replace(self._editor.client, trusted=True, trust_unsaid=False)
        self._configuration.trusted = self._status.trusted = True
        await self._reconfigure()
        for file in self._state.files():
            self._state.update(file.uri, lambda state: replace(state, trusted=True))
            self._on_trusted(file.uri)


def _approvals() -> Approvals:
    return Approvals.of_user(os.environ)
