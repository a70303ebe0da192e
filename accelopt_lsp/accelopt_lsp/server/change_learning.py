"""Remember this change: what a person rewrote between two saves becomes a slow-fast pair."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from functools import partial

from accelopt_lsp.errors import RefusedError, UserError
from accelopt_lsp.features.wording import speedup
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.session import Session
from accelopt_lsp.state.jobs import BackgroundJob
from accelopt_profiling.kernels import KernelSource

#: So many texts that were profiled are kept of each open file.
TEXTS_KEPT = 4


class ProfiledTexts:
    """The last texts of each document that were profiled, by the content hashes of their kernels."""

    def __init__(self) -> None:
        self._texts: dict[str, OrderedDict[str, frozenset[str]]] = {}

    def note(self, uri: str, source: KernelSource) -> None:
        texts = self._texts.setdefault(uri, OrderedDict())
        texts[source.text] = frozenset(k.content_hash for k in source.kernels)
        texts.move_to_end(source.text)
        while len(texts) > TEXTS_KEPT:
            texts.popitem(last=False)

    def holding(self, uri: str, content_hash: str, other_than: str) -> str | None:
        """Return the newest text that holds the kernel of that content, ``other_than`` left out: a change of a
        constant of the module leaves the content of the kernel as it was."""
        texts = reversed(self._texts.get(uri, OrderedDict()).items())
        return next((text for text, hashes in texts if content_hash in hashes and text != other_than), None)

    def before(self, uri: str, text: str) -> str | None:
        """Return the newest text of the document that is not ``text``."""
        return next((t for t in reversed(self._texts.get(uri, OrderedDict())) if t != text), None)

    def drop(self, uri: str) -> None:
        self._texts.pop(uri, None)


class ChangeLearning:
    def __init__(self, session: Session, texts: ProfiledTexts) -> None:
        self._editor, self._state, self._jobs = session.editor, session.state, session.jobs
        self._service, self._files, self._texts = session.service, session.files, texts

    def actions(self) -> Mapping[str, Handler]:
        return {"remember": self.remember}

    def remember(self, args: Arguments) -> BackgroundJob:
        """Remember the change that made a kernel faster than at the last save. Raises UserError: none is named."""
        job = BackgroundJob.of("remember", args.document(), args.kernel)
        return self._jobs.start(job, self._run(job))

    async def _run(self, job: BackgroundJob) -> None:
        state = self._state.get(job.uri)
        kernel = state.kernel(job.kernel) if state is not None and job.kernel else None
        before = kernel.before if kernel is not None else None
        file = await self._files.read(job.uri)
        slow = self._texts.holding(job.uri, before.content_hash, file.text) if before is not None else None
        if slow is None or job.kernel is None:
            raise UserError(
                f"No earlier version of {job.kernel or 'the kernel'} is known; save a change first."
            )
        async with self._editor.progress(job.title, partial(self._jobs.cancel, job.id)):
            try:
                pair = await self._service.learn(file, slow, job.kernel)
            except RefusedError as refusal:
                raise UserError(f"The change to {job.kernel} was not remembered. {refusal}") from None
        faster = speedup(pair.speedup)
        self._editor.say(
            f"Remembered the change to {pair.kernel}, {faster}, as the slow-fast pair {pair.pair}.", "info"
        )
