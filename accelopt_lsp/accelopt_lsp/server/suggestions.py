"""Accept, reject and choose suggestions: one becomes text in the editor and a row in the memory, or is remembered as
not wanted."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import platformdirs

from accelopt_agent.suggestions.suggestion import REASONS, Suggestion, best_first
from accelopt_agent.suggestions.text_edit import ApplyRefusal, apply_to_text
from accelopt_lsp.errors import UserError
from accelopt_lsp.features.review import review
from accelopt_lsp.features.wording import duration_interval, origin, speedup, version_name
from accelopt_lsp.server import convert
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.documents import file_path
from accelopt_lsp.server.session import Session
from accelopt_lsp.settings.load import Settings
from accelopt_lsp.state.jobs import BackgroundJob, to_its_end
from accelopt_lsp.state.state_store import Document, KernelState

if TYPE_CHECKING:
    from lsprotocol import types


#: How long an edit that the editor says it makes may take to arrive, in seconds.
EDIT_ARRIVES = 3.0

_APPLY, _SHOW, _LATER = "Apply", "Show diff", "Not now"
_SAVE, _UNDO = "Save", "Undo"

#: The notification that the suggestions for a document, ``{"uri"}``, are others, or outdated.
VERSIONS = "accelopt/versions"

#: The notification that asks the editor to save a document, ``{"uri"}``, where it says that it can.
SAVE = "accelopt/save"


class SuggestionActions:
    """``text_changes(uri, seconds)`` waits for the next edit of a document; False when none came in that time."""

    def __init__(self, session: Session, text_changes: Callable[[str, float], Awaitable[bool]]) -> None:
        self._editor, self._state, self._status = session.editor, session.state, session.status
        self._jobs, self._tasks, self._service = session.jobs, session.tasks, session.service
        self._documents, self._configuration = session.documents, session.configuration
        self._parser, self._files = session.parser, session.files
        self._text_changes = text_changes
        self._listed: dict[str, list[tuple[str, bool]]] = {}
        self._refuted: set[tuple[object, ...]] = (
            set()
        )  # suggestions with the programs that they do not hold in
        session.documents.read.listen(self._text_read)
        session.state.changed.listen(self._document_changed)

    def actions(self) -> Mapping[str, Handler]:
        return {
            "accept": self.accept,
            "reject": self.reject,
            "versions": self.versions,
            "choose": self.choose,
        }

    def accept(self, args: Arguments) -> BackgroundJob:
        """Record a suggestion as accepted; with ``apply`` make its edit first, with ``ask`` ask before that."""
        return self._start(args, self._accept)

    def reject(self, args: Arguments) -> BackgroundJob:
        """Record that a suggestion is not wanted, then ask for a reason, which need not be given, or to undo it."""
        return self._start(args, self._reject)

    def versions(self, args: Arguments) -> dict[str, Any]:
        """Return the suggestions for a kernel (named, at the 1-based line, or all of the file, or of all open
        files), best first per kernel, and those that an edit has made outdated."""
        states = [self._state.get(args.uri)] if args.uri else list(self._state.files())
        kernels = [(s.uri, kernel) for s in states if s is not None for kernel in _meant(s, args)]
        versions = [described(uri, s) for uri, kernel in kernels for s in kernel.offers]
        outdated = [described(uri, s) for uri, kernel in kernels for s in kernel.outdated]
        return {"versions": versions, "outdated": outdated}

    def choose(self, args: Arguments) -> BackgroundJob:
        """Ask the person which version of a kernel they want, then as ``accept`` with ``ask`` does."""
        job = BackgroundJob.of("choose", args.document(), args.kernel)
        return self._jobs.start(job, self._choose(args))

    async def edit_of(self, suggestion: Suggestion, uri: str) -> types.WorkspaceEdit | ApplyRefusal:
        """Return the edit that brings a suggestion into the current text of ``uri``, or why there is none."""
        version = self._documents.version(uri)
        try:
            text = await self._documents.text(uri)
        except UserError as error:
            return ApplyRefusal(str(error))
        edits = await self._parser.edits_for(text, suggestion)
        if isinstance(edits, ApplyRefusal):
            return edits
        if self._documents.version(uri) not in (None, version):
            return ApplyRefusal("The file was edited just now; try again.")
        return convert.workspace_edit(uri, version, edits, self._documents.lines(text), self._editor.client)

    async def find(self, suggestion_id: str | None, uri: str | None = None) -> tuple[Suggestion, str]:
        """Return the suggestion and the document it is for.

        Raises:
            UserError: there is none of that id.
        """
        if suggestion_id is None:
            raise UserError('A suggestion is named by its id: {"id": "..."}.')
        entry = self._state.suggestion(suggestion_id)
        if entry is not None:
            state, _, suggestion = entry
            return suggestion, uri or state.uri
        files = [uri] if uri else [file.uri for file in self._state.files()]
        roots = [(folder / "file.py").as_uri() for folder in self._documents.folders]
        for place in [*files, *roots] or [(Path.cwd() / "file.py").as_uri()]:
            stored = await self._service.suggestion(suggestion_id, await self._settings(place))
            if stored is not None:
                return stored, uri or Path(stored.file).absolute().as_uri()
        raise UserError(f"There is no suggestion {suggestion_id}; optimize the kernel again.")

    def target(self, args: Arguments) -> tuple[str, str | None]:
        """Return the document and the kernel of the suggestion that ``args`` name, as far as they are known:
        "" and None."""
        entry = self._state.suggestion(args.id) if args.id else None
        return args.uri or (entry[0].uri if entry else ""), entry[2].kernel if entry else None

    def note_check(self, uri: str, suggestion: Suggestion, holds: bool) -> None:
        """Note whether a suggestion holds in a document as it is: where it does not it is outdated."""
        if (state := self._state.get(uri)) is not None:
            claim = _claim(state, suggestion)
            self._refuted = self._refuted - {claim} if holds else self._refuted | {claim}
            self._text_read(uri)

    def _start(self, args: Arguments, run: Callable[[Arguments], Coroutine[Any, Any, None]]) -> BackgroundJob:
        uri, kernel = self.target(args)
        return self._jobs.start(BackgroundJob.of(args.action.name, uri, kernel, id=args.id or ""), run(args))

    async def _accept(self, args: Arguments) -> None:
        suggestion, uri = await self.find(args.id, args.uri)
        if args.ask and not await self._agreed(suggestion):
            return
        await to_its_end(self._accept_agreed(args, suggestion, uri))

    async def _accept_agreed(self, args: Arguments, suggestion: Suggestion, uri: str) -> None:
        if args.apply or args.ask:
            if not await self._apply(suggestion, uri):
                return
        elif not await self._is_applied(suggestion, uri):
            raise UserError(
                f"{suggestion.kernel} does not hold suggestion {suggestion.id}, so it was not remembered as accepted. "
                'Send {"id": ..., "apply": true} to have the server apply it.'
            )
        pair = await self._service.accept(suggestion.id, await self._settings(uri))
        self._status.reached.add("accepted")
        fast = (await self._parser.find_kernels(suggestion.text)).kernels
        content_hash = next((k.content_hash for k in fast if k.name == suggestion.kernel), "")
        await self._files.find_kernels(uri)
        self._state.update(uri, lambda state: state.with_accepted(suggestion, content_hash))
        what = f"{suggestion.summary.rstrip('.')}, {speedup(suggestion.speedup)}"
        done = f"Accepted for {suggestion.kernel}: {what}. Remembered as pair {pair}."
        if self._editor.asks:
            self._tasks.start(self._after_accepting(suggestion, uri, content_hash, done))
        else:
            self._editor.note(done)

    async def _after_accepting(self, suggestion: Suggestion, uri: str, content_hash: str, done: str) -> None:
        """Offer to save the file, to see the change, or to undo: the old text comes back, and the pair is withdrawn."""
        saves = [_SAVE] if self._editor.client.saves else []
        shows = [_SHOW] if self._editor.shows_files else []
        while (answer := await self._editor.ask(done, [*saves, _UNDO, *shows])) == _SHOW:
            await self._editor.show_file(await write_patch(suggestion))
            shows = []
        if answer == _SAVE:
            self._editor.notify(SAVE, {"uri": uri})
        elif answer == _UNDO:
            back = replace(
                suggestion,
                id=f"{suggestion.id} undone",
                base_text=suggestion.text,
                text=suggestion.base_text,
                base_hash=content_hash,
                summary=f"undo {suggestion.summary}",
            )
            if await self._apply(back, uri):
                await self._take_back(suggestion, uri)

    async def _take_back(self, suggestion: Suggestion, uri: str) -> None:
        await self._service.offer_again(suggestion.id, await self._settings(uri))
        self._state.update(uri, lambda state: state.with_decided([]))
        await self._files.find_kernels(uri)
        self._editor.note(f"S{_named(suggestion)[1:]} is offered again.")
        self._offer(uri, suggestion)

    async def _reject(self, args: Arguments) -> None:
        suggestion, uri = await self.find(args.id, args.uri)
        await self._service.reject(suggestion.id, await self._settings(uri))
        done = f"Remembered that {_named(suggestion)} is not wanted."
        self._forget(uri, suggestion)
        if not self._editor.asks:
            self._editor.note(done)
            return
        self._tasks.start(self._after_rejecting(suggestion, uri, done))

    async def _after_rejecting(self, suggestion: Suggestion, uri: str, done: str) -> None:
        """Ask for a reason, or undo it."""
        answer = await self._editor.ask(f"{done} Why?", [*REASONS, _UNDO])
        if answer == _UNDO:
            await self._take_back(suggestion, uri)
        elif answer in REASONS:
            await self._service.reject(suggestion.id, await self._settings(uri), answer)
            self._editor.note(f"Remembered that {_named(suggestion)} is not wanted: {answer}.")

    async def _apply(self, suggestion: Suggestion, uri: str) -> bool:
        if not self._editor.applies_edits:
            raise UserError("This editor applies no edits for a server; use `accelopt accept` in a terminal.")
        edit = await self.edit_of(suggestion, uri)
        if isinstance(edit, ApplyRefusal):
            self._editor.say(edit.reason, "warning")
            return False
        applied, why_not = await self._editor.apply_edit(edit, f"AccelOpt: {suggestion.summary}")
        if not applied:
            reason = f": {why_not}" if why_not else "; it may have been edited just now"
            self._editor.say(f"The editor did not apply the suggestion{reason}. Try again.", "warning")
        return applied

    async def _is_applied(self, suggestion: Suggestion, uri: str) -> bool:
        """Return whether the document holds the suggestion; an edit on its way is waited for."""
        while True:
            if await self._parser.holds(await self._documents.text(uri), suggestion):
                return True
            if not await self._text_changes(uri, EDIT_ARRIVES):
                return False

    async def _agreed(self, suggestion: Suggestion) -> bool:
        """Ask the person, with the diff on request."""
        how = f"{speedup(suggestion.speedup)}, {origin(suggestion)}"
        question = f"{suggestion.summary} {how}. Apply it to {suggestion.kernel}?"
        choices = [_APPLY, _SHOW, _LATER]
        while (answer := await self._editor.ask(question, choices)) == _SHOW:
            choices = [_APPLY, _LATER]
            if self._editor.shows_files:
                await self._editor.show_file(await write_patch(suggestion))
            else:
                self._editor.note(suggestion.diff, "info")
        return answer == _APPLY

    async def _settings(self, uri: str) -> Settings:
        return await self._configuration.of(file_path(uri) or str(Path.cwd() / "file.py"))

    def _forget(self, uri: str, suggestion: Suggestion) -> None:
        state = self._state.get(uri)
        kernel = state.kernel(suggestion.kernel) if state else None
        if kernel is not None:
            rest = tuple(s for s in kernel.suggestions if s.id != suggestion.id)
            self._state.suggest(uri, suggestion.kernel, rest)

    def _offer(self, uri: str, suggestion: Suggestion) -> None:
        state = self._state.get(uri)
        kernel = state.kernel(suggestion.kernel) if state else None
        if kernel is not None:
            others = [s for s in kernel.suggestions if s.id != suggestion.id]
            self._state.suggest(uri, suggestion.kernel, tuple(best_first([suggestion, *others])))

    async def _choose(self, args: Arguments) -> None:
        state = self._state.get(args.document())
        offers = [s for kernel in (_meant(state, args) if state else ()) for s in kernel.offers]
        if not offers:
            raise UserError(f"Nothing faster is known for {args.kernel or 'this file'}; optimize it first.")
        chosen: Suggestion | None = offers[0]
        if len(offers) > 1:
            titles = {_line(number, suggestion): suggestion for number, suggestion in enumerate(offers, 1)}
            question = f"{len(offers)} versions of {offers[0].kernel} are checked and faster. Look at which?"
            chosen = titles.get(await self._editor.ask(question, list(titles)) or "")
        if chosen is not None:
            await self._accept(replace(args, id=chosen.id, ask=True))

    def _text_read(self, uri: str) -> None:
        state = self._state.get(uri)
        if state is not None and any(k.suggestions for k in state.kernels):
            self._tasks.start(self._find_unfit(state))

    async def _find_unfit(self, state: Document) -> None:
        """Find out which suggestions for kernels as they are no longer fit the text around them."""
        version, text = self._documents.version(state.uri), self._documents.opened(state.uri)
        unfit = set()
        for kernel in state.kernels:
            for suggestion in kernel.suggestions:
                same = suggestion.base_hash == kernel.kernel.content_hash and suggestion.base_text != text
                if text is not None and same:
                    edits = await self._parser.edits_for(text, suggestion)
                    refuted = _claim(state, suggestion) in self._refuted
                    unfit |= {suggestion.id} if refuted or isinstance(edits, ApplyRefusal) else set()
        if self._documents.version(state.uri) == version:
            self._state.update(state.uri, lambda now: now.with_unfit(frozenset(unfit)))

    def _document_changed(self, state: Document) -> None:
        """Tell a client that lists the suggestions of all files when there are others."""
        listed = [(s.id, s in k.offers) for k in state.kernels for s in k.suggestions]
        if self._editor.client.versions and listed != self._listed.get(state.uri, []):
            self._listed[state.uri] = listed
            self._editor.notify(VERSIONS, {"uri": state.uri})


def _meant(state: Document, args: Arguments) -> list[KernelState]:
    if args.kernel is None and args.line is not None and (at := state.kernel_at(args.line)):
        return [at]
    return [k for k in state.kernels if args.kernel in (None, k.kernel.name)]


def _claim(state: Document, suggestion: Suggestion) -> tuple[object, ...]:
    """Return what says that a suggestion holds in the program that a document has now."""
    return suggestion.id, state.uri, state.rest_hash, *(k.kernel.content_hash for k in state.kernels)


def _named(suggestion: Suggestion) -> str:
    return f"suggestion {suggestion.id} for {suggestion.kernel}"


def described(uri: str, suggestion: Suggestion) -> dict[str, Any]:
    """Return a suggestion in words, for a list to choose from."""
    return {
        "id": suggestion.id,
        "uri": uri,
        "kernel": suggestion.kernel,
        "title": version_name(suggestion),
        "speedup": speedup(suggestion.speedup),
        "latency": f"{duration_interval(suggestion.fast)} on {suggestion.target}",
        "origin": origin(suggestion),
        "summary": suggestion.summary,
        "review": review(suggestion),
        "steps": [step.id for step in suggestion.way],
    }


def _line(number: int, suggestion: Suggestion) -> str:
    return (
        f"{number}. {speedup(suggestion.speedup)} · {suggestion.summary.rstrip('.')} · {origin(suggestion)}"
    )


async def write_patch(suggestion: Suggestion) -> Path:
    """Write a suggestion's diff to the user's cache folder, for editors that have no other way to show one.

    Raises:
        OSError: the folder cannot be written.
    """
    path = Path(platformdirs.user_cache_dir("accelopt")) / "patches" / f"{suggestion.id}.patch"
    await asyncio.to_thread(_write, path, suggestion.diff)
    return path


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


SCHEME = "accelopt-candidate"

#: The custom request with the same answer, for clients without ``workspace/textDocumentContent``.
METHOD = "accelopt/candidate"

#: So many candidates are kept fresh in the editor, the ones asked for last.
KEPT = 8


def suggestion_id(uri: str) -> str | None:
    """Return the id in a candidate's address; editors send the query percent-encoded (``?id%3D7``) or not."""
    parts = urlsplit(uri)
    if parts.scheme != SCHEME:
        return None
    return parse_qs(unquote(parts.query)).get("id", [None])[0]


class CandidateTexts:
    """The texts of candidates, and who asked for them: what the editor shows is told when the file is edited."""

    def __init__(self, session: Session, suggestions: SuggestionActions) -> None:
        self._editor, self._tasks, self._documents = session.editor, session.tasks, session.documents
        self._parser, self._suggestions = session.parser, suggestions
        self._shown: OrderedDict[str, str] = OrderedDict()
        session.documents.read.listen(self._file_read)

    async def text(self, uri: str) -> str:
        """Return the text behind a candidate's address.

        Raises:
            UserError: the address names no suggestion.
        """
        identifier = suggestion_id(uri)
        if identifier is None:
            raise UserError(f"{uri} names no suggestion; it should read {SCHEME}:/FILE?id=ID.")
        suggestion, document_uri = await self._suggestions.find(identifier)
        self._shown[uri] = document_uri
        self._shown.move_to_end(uri)
        while len(self._shown) > KEPT:
            self._shown.popitem(last=False)
        try:
            text = await self._documents.text(document_uri)
        except UserError:
            return suggestion.text
        edits = await self._parser.edits_for(text, suggestion)
        return suggestion.text if isinstance(edits, ApplyRefusal) else apply_to_text(text, edits)

    def _file_read(self, document_uri: str) -> None:
        """Have the editor fetch the candidates for a file again that it was given before."""
        if not self._editor.shows_own_documents:
            return
        for uri, of in self._shown.items():
            if of == document_uri:
                self._tasks.start(self._editor.renew_document(uri))
