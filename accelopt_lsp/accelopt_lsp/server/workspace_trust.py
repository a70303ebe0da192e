"""Ask the person what the editor did not say: whether the folder of a file is trusted, and whether the sensitive
settings of its project are to be used. Each answer is kept (``settings.approvals``), so each question comes once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from accelopt_lsp.errors import UserError
from accelopt_lsp.server.connection import EditorRefusedError
from accelopt_lsp.server.documents import file_path
from accelopt_lsp.server.session import Session
from accelopt_lsp.server.settings_sync import SettingsSync
from accelopt_lsp.settings.approvals import Approvals, UnapprovedSettings

TRUST, APPROVE, NOT_NOW = "Trust this folder", "Use them", "Not now"


class WorkspaceTrust:
    """Trusts a folder that the editor does not speak of when the person does."""

    def __init__(self, session: Session, settings: SettingsSync) -> None:
        self._editor, self._tasks, self._configuration = session.editor, session.tasks, session.configuration
        self._settings, self._work_changed = settings, session.work_changed
        self._asked: set[str] = set()
        session.configuration.unapproved.listen(self.unapproved)

    async def require(self, uri: str | None, work: str) -> None:
        """Ask about the folder of a document, where nobody did. Raises UserError: it is not trusted, so there is no
        such ``work``."""
        path = file_path(uri) if uri else None
        folder = (await self._configuration.of(path)).untrusted if path else None
        if folder is not None and await asyncio.to_thread(folder.is_dir):
            self.needed(folder)
            raise UserError(f"{folder} is not trusted, so nothing of it is run: no {work}.")

    def needed(self, folder: Path) -> None:
        """Ask, once, because something of an untrusted folder would be run."""
        self._work_changed()
        if not self._configuration.workspace.restricted and self._first(str(folder)):
            question = (
                f"Do you trust the files in {folder}? AccelOpt runs its kernels in a sandbox, and a Python environment "
                "of that folder with your permissions."
            )
            advice = f"Nothing of {folder} is run until you trust it: `accelopt trust {folder}`."
            self._tasks.start(self._ask(question, TRUST, advice, lambda: self._trust(folder)))

    def unapproved(self, settings: UnapprovedSettings) -> None:
        """Ask, once, about sensitive settings of the project that are not used."""
        if self._first(f"{settings.folder}\0{settings}"):
            question = (
                f"The settings of the project in {settings.folder} name programs, hosts or models, or what is sent to "
                f"them: {settings}. Use them?"
            )
            advice = f"Settings: not used until you approve them with `accelopt trust {settings.folder}`: {settings}"
            self._tasks.start(self._ask(question, APPROVE, advice, lambda: self._approve(settings)))

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

    async def _trust(self, folder: Path) -> None:
        await asyncio.to_thread(_approvals().give, folder, trust=True)
        await self._settings.reconfigure()

    async def _approve(self, settings: UnapprovedSettings) -> None:
        await asyncio.to_thread(_approvals().give, settings.folder, settings.values)
        await self._settings.reconfigure()


def _approvals() -> Approvals:
    return Approvals.of_user(os.environ)
