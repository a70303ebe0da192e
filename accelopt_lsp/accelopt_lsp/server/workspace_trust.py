"""Ask the person what the editor did not say: whether the folder of a file is trusted, and whether the sensitive
settings of its project are to be used. Each answer is kept (``settings.approvals``). By itself each question comes
once; it comes again when the person asks for what needs it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from accelopt_lsp.errors import UserError
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.connection import EditorRefusedError
from accelopt_lsp.server.documents import file_path
from accelopt_lsp.server.session import Session
from accelopt_lsp.server.settings_sync import SettingsSync
from accelopt_lsp.settings.approvals import Approvals, UnapprovedSettings
from accelopt_lsp.state.state_store import Document

TRUST, APPROVE, NOT_NOW = "Trust this folder", "Use them", "Not now"


class WorkspaceTrust:
    """Trusts a folder that the editor does not speak of when the person does."""

    def __init__(self, session: Session, settings: SettingsSync) -> None:
        self._editor, self._tasks, self._configuration = session.editor, session.tasks, session.configuration
        self._settings, self._work_changed = settings, session.work_changed
        self._asked: set[str] = set()
        self._open: set[str] = set()
        self._state = session.state
        session.configuration.unapproved.listen(self.unapproved)

    def actions(self) -> Mapping[str, Handler]:
        return {"trust": self.ask_again}

    def ask_again(self, args: Arguments) -> dict[str, bool]:
        """Ask again about the folder of a document, or of all that are open; return whether there was anything.

        Raises:
            UserError: the editor itself restricts the window.
        """
        if self._configuration.workspace.restricted:
            raise UserError(
                "The editor trusts none of its folders, so nothing of them is run; trust them in the editor."
            )
        self._open.clear()  # a question that is still open may have gone out of sight
        documents = [state for state in self._state.files() if args.uri in (None, state.uri)]
        return {"asked": sum(map(self._ask_about, documents)) > 0}

    def _ask_about(self, document: Document) -> bool:
        settings = self._configuration.cached(document.path)
        if settings is None:
            return False
        if settings.untrusted is not None:
            self.needed(settings.untrusted, again=True)
        elif settings.unapproved is not None:
            self.unapproved(settings.unapproved, again=True)
        return settings.untrusted is not None or settings.unapproved is not None

    async def require(self, uri: str | None, work: str) -> None:
        """Ask about the folder of a document, where nobody did. Raises UserError: it is not trusted, so there is no
        such ``work``."""
        path = file_path(uri) if uri else None
        folder = (await self._configuration.of(path)).untrusted if path else None
        if folder is not None and await asyncio.to_thread(folder.is_dir):
            self.needed(folder, again=True)
            raise UserError(f"{folder} is not trusted, so nothing of it is run: no {work}.")

    def needed(self, folder: Path, again: bool = False) -> None:
        """Ask because something of an untrusted folder would be run, once unless the person wants it ``again``."""
        self._work_changed()
        if not self._configuration.workspace.restricted:
            question = (
                f"Do you trust the files in {folder}? AccelOpt runs its kernels in a sandbox, and a Python environment "
                "of that folder with your permissions."
            )
            advice = f"Nothing of {folder} is run until you trust it: `accelopt trust {folder}`."
            self._ask(question, TRUST, advice, lambda: self._trust(folder), again=again)

    def unapproved(self, settings: UnapprovedSettings, again: bool = False) -> None:
        """Ask about sensitive settings of the project that are not used, once unless the person wants it ``again``."""
        question = (
            f"The settings of the project in {settings.folder} name programs, hosts or models, or what is sent to "
            f"them: {settings}. Use them?"
        )
        advice = (
            f"Settings: not used until you approve them with `accelopt trust {settings.folder}`: {settings}"
        )
        self._ask(question, APPROVE, advice, lambda: self._approve(settings), again=again)

    def _ask(
        self, question: str, yes: str, advice: str, then: Callable[[], Awaitable[None]], *, again: bool
    ) -> None:
        """Ask what was not asked yet; ``again``, also what was asked and is not open any more."""
        if question not in self._asked or (again and question not in self._open):
            self._asked.add(question)
            self._open.add(question)
            answer = self._tasks.start(self._answer(question, yes, advice, then))
            answer.add_done_callback(lambda _: self._open.discard(question))

    async def _answer(
        self, question: str, yes: str, advice: str, then: Callable[[], Awaitable[None]]
    ) -> None:
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
