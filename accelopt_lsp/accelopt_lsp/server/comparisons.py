"""Compare a kernel with the one of another text: the last save, the last commit, the version that was accepted, or one
that the person has."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path

from accelopt_lsp.errors import UserError
from accelopt_lsp.features.wording import change
from accelopt_lsp.server.change_learning import ProfiledTexts
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.git import committed
from accelopt_lsp.server.pages import Pages
from accelopt_lsp.server.searches import kernels_meant
from accelopt_lsp.server.session import Session
from accelopt_lsp.service.protocol import FileRequest
from accelopt_lsp.state.jobs import BackgroundJob
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.source_text import source_lines

#: A comparison that is there sooner than this, in seconds, shows no progress.
QUICK = 0.5

#: What a kernel can be compared with, by the argument ``against``.
AGAINST = {
    "save": "the last save",
    "commit": "the last commit",
    "accepted": "the version that you accepted",
    "text": "the other text",
}


class Comparisons:
    def __init__(self, session: Session, pages: Pages, texts: ProfiledTexts) -> None:
        self._editor, self._state, self._jobs = session.editor, session.state, session.jobs
        self._service, self._files, self._parser = session.service, session.files, session.parser
        self._pages, self._texts = pages, texts

    def actions(self) -> Mapping[str, Handler]:
        return {"compare": self.compare}

    def compare(self, args: Arguments) -> BackgroundJob:
        """Show what changed in cost ``against`` another text, which is asked for where none is named.

        Raises:
            UserError: there is nothing of that name to compare with.
        """
        if args.against not in ("", *AGAINST):
            raise UserError(f"{args.action.command}: `against` is one of {', '.join(AGAINST)}.")
        job = BackgroundJob.of("compare", args.document(), args.kernel)
        return self._jobs.start(job, self._run(job, args))

    async def _run(self, job: BackgroundJob, args: Arguments) -> None:
        file = await self._files.read(job.uri)
        name = kernels_meant(file, args.kernel, args.line)[0]
        against = args.against or ("text" if args.text else await self._chosen(name))
        if not against:
            return
        than, text = AGAINST[against], await self._other(against, file, name, args)
        other = await self._parser.examine(Path(file.path), text, file.settings)
        if all(kernel.name != name for kernel in other.source.kernels):
            raise UserError(f"{than[:1].upper()}{than[1:]} has no kernel {name}.")
        async with self._editor.progress(job.title, partial(self._jobs.cancel, job.id), delay=QUICK):
            slow, fast = await self._measured(other, name), await self._measured(file, name)
        words = await asyncio.to_thread(importlib.import_module, "accelopt_lsp.features.comparison")
        versions = await asyncio.to_thread(importlib.import_module, "accelopt_agent.search.versions")
        changed = change(slow, fast)
        pair = versions.MeasuredVersions(slow, fast)
        page = words.comparison(pair, changed, texts=(text, file.text), than=than)
        brief = page.partition("## ")[0].strip()
        await self._pages.show(f"{name} compared", f"{file.path} {against}", f"{name}: compared", page, brief)

    async def _chosen(self, name: str) -> str:
        """Ask the person what to compare with; "" where they choose nothing."""
        if not self._editor.asks:
            return "save"
        words = {title: key for key, title in AGAINST.items() if key != "text"}
        answer = await self._editor.ask(f"Compare {name} with what?", list(words))
        return words.get(answer or "", "")

    async def _other(self, against: str, file: FileRequest, name: str, args: Arguments) -> str:
        """Return the other text. Raises UserError: there is none."""
        if against == "text":
            return self._whole(file, name, args.text)
        if against == "commit":
            return await committed(Path(file.path))
        state = self._state.get(args.document())
        kernel = state.kernel(name) if state is not None else None
        if against == "accepted":
            if kernel is None or kernel.accepted is None:
                raise UserError(f"No version of {name} in this file was accepted.")
            return kernel.accepted.text
        text = self._texts.before(args.document(), file.text)
        if text is None:
            raise UserError(f"No earlier version of {name} is known; save a change first.")
        return text

    def _whole(self, file: FileRequest, name: str, text: str) -> str:
        """Return a whole file: a ``text`` without imports holds the kernel alone, which takes its place in the file."""
        if re.search(r"^(import|from) ", text, re.MULTILINE):
            return text
        own = next(k for k in file.source.kernels if k.name == name)
        lines = source_lines(file.text)
        return "\n".join([*lines[: own.first_line - 1], text.rstrip("\n"), *lines[own.end_line :], ""])

    async def _measured(self, file: FileRequest, name: str) -> KernelMeasurement:
        """Profile one kernel. Raises UserError: nothing is known of it."""
        last = file.stored
        if last is None:
            async with aclosing(self._service.profile(file, [name])) as growing:
                async for results in growing:
                    last = results
        measurement = next((k for k in last.kernels if k.name == name), None) if last is not None else None
        if measurement is None:
            raise UserError(f"{name} could not be profiled.")
        return measurement
