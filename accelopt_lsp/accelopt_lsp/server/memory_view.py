"""Show what the memory holds for a kernel or with certain words, as a page; list a project's pairs, and forget one when
the person confirms."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelopt_lsp.errors import UserError
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.documents import file_path
from accelopt_lsp.server.pages import Pages
from accelopt_lsp.server.searches import kernels_meant
from accelopt_lsp.server.session import Session
from accelopt_lsp.settings.load import Settings
from accelopt_lsp.state.jobs import BackgroundJob

_FORGET, _KEEP = "Forget", "Keep"

#: So many lines of a page go into a message, where there is no page.
BRIEF_LINES = 8


class MemoryView:
    def __init__(self, session: Session, pages: Pages) -> None:
        self._editor, self._state = session.editor, session.state
        self._jobs, self._service, self._documents = session.jobs, session.service, session.documents
        self._configuration, self._files, self._pages = session.configuration, session.files, pages

    def actions(self) -> Mapping[str, Handler]:
        return {"showMemory": self.show, "forget": self.forget, "pairs": self.pairs}

    def show(self, args: Arguments) -> BackgroundJob:
        """Show the pairs with the words ``args.query``, or else those that a search would try on a kernel."""
        job = BackgroundJob.of("showMemory", args.document(), args.kernel)
        return self._jobs.start(job, self._show(job, args))

    def forget(self, args: Arguments) -> BackgroundJob:
        """Delete the pair ``args.id``, after a question where the editor can ask one. Raises UserError: no id."""
        if not args.id:
            raise UserError(f'{args.action.command} needs the id of a pair: {{"id": "..."}}.')
        job = BackgroundJob.of("forget", args.uri or "", id=args.id)
        return self._jobs.start(job, self._forget(args.uri, args.id))

    async def pairs(self, args: Arguments) -> dict[str, Any]:
        """Return the pairs of the open folders, or the texts of the pair ``args.id``.

        Raises:
            UserError: there is no such pair, or the memory cannot be used.
        """
        settings = await self._settings(None)
        if args.id:
            return dict(await self._service.pair_texts(args.id, settings))
        folders = [str(folder) for folder in self._folders()]
        return {"pairs": await self._service.memory_list(folders, settings)}

    async def _show(self, job: BackgroundJob, args: Arguments) -> None:
        if args.query.strip():
            settings = await self._settings(job.uri)
            text, about = await self._service.memory_with_words(args.query, settings), args.query
        else:
            file = await self._files.read(job.uri)
            names = kernels_meant(file, args.kernel, args.line)
            state = self._state.get(job.uri)
            kernel = state.kernel(names[0]) if state is not None else None
            bound = kernel.shown.bound if kernel is not None and kernel.shown is not None else None
            text = await self._service.memory_for_kernel(file, names[0], bound)
            about = f"{names[0]} in {file.path}"
        brief = "\n".join(text.splitlines()[:BRIEF_LINES])
        await self._pages.show("remembered changes", about, "Remembered changes", text, brief)

    async def _forget(self, uri: str | None, pair: str) -> None:
        if self._editor.asks:
            answer = await self._editor.ask(
                f"Forget the remembered change {pair} for good?", [_FORGET, _KEEP]
            )
            if answer != _FORGET:
                return
        self._editor.say(await self._service.forget(pair, await self._settings(uri)))

    def _folders(self) -> tuple[Path, ...]:
        return self._documents.folders or (Path.cwd(),)

    async def _settings(self, uri: str | None) -> Settings:
        """Return the settings of a document, or of the first folder. Raises UserError: it is no file."""
        path = str(self._folders()[0] / "kernel.py") if uri is None else file_path(uri)
        if path is None:
            raise UserError(f"{uri} is no file, so no memory belongs to it.")
        return await self._configuration.of(path)
