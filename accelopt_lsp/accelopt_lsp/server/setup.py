"""Build the parts of the server and register every LSP method and command once. A handler reads the state store or
starts work, and a failing one ends nothing else."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from accelopt_agent.suggestions.text_edit import ApplyRefusal
from accelopt_lsp.actions import ACTIONS, KINDS, QUICKFIX, SUGGESTION, Action
from accelopt_lsp.errors import UserError
from accelopt_lsp.features import hints, hover, lens
from accelopt_lsp.features.code_actions import code_actions
from accelopt_lsp.features.completion import completions
from accelopt_lsp.features.operation_hover import operation_hover
from accelopt_lsp.features.signature_help import signature_help
from accelopt_lsp.features.stub_action import stub_actions
from accelopt_lsp.server import convert
from accelopt_lsp.server.change_learning import ChangeLearning
from accelopt_lsp.server.client import Client
from accelopt_lsp.server.commands import Arguments, Feature, Handler
from accelopt_lsp.server.comparisons import Comparisons
from accelopt_lsp.server.document_sync import DocumentSync
from accelopt_lsp.server.documents import file_path
from accelopt_lsp.server.explanations import Explanations
from accelopt_lsp.server.file_watcher import FileWatcher
from accelopt_lsp.server.first_message import COMPLETION_TRIGGERS, SIGNATURE_TRIGGERS
from accelopt_lsp.server.first_steps import FirstSteps
from accelopt_lsp.server.kernel_costs import KernelCosts
from accelopt_lsp.server.limit_fix import LimitFix
from accelopt_lsp.server.memory_view import MemoryView
from accelopt_lsp.server.new_files import NewFiles
from accelopt_lsp.server.newer_names import NewerNames
from accelopt_lsp.server.pages import SCHEME as PAGE_SCHEME
from accelopt_lsp.server.pages import Pages
from accelopt_lsp.server.pictures import PictureView
from accelopt_lsp.server.profiles import Profiles
from accelopt_lsp.server.publisher import Publisher
from accelopt_lsp.server.recordings import Recordings
from accelopt_lsp.server.searches import Searches
from accelopt_lsp.server.server import AccelOptServer
from accelopt_lsp.server.session import Session
from accelopt_lsp.server.settings_sync import SettingsSync
from accelopt_lsp.server.silence import Silence
from accelopt_lsp.server.suggestions import METHOD as CANDIDATE_METHOD
from accelopt_lsp.server.suggestions import SCHEME, CandidateTexts, SuggestionActions
from accelopt_lsp.server.target_comparison import TargetComparison
from accelopt_lsp.server.version_checks import VersionChecks
from accelopt_lsp.server.workspace_trust import WorkspaceTrust
from accelopt_lsp.service.parser import ParserProcess
from accelopt_lsp.service.protocol import Service
from accelopt_lsp.service.surface import Surface
from accelopt_lsp.settings.trust import Workspace
from accelopt_lsp.state.jobs import BackgroundJob
from accelopt_lsp.state.line_map import LineMap

log = logging.getLogger(__name__)

T = TypeVar("T")


def guarded(name: str, handler: Callable[..., T], nothing: T) -> Callable[..., T]:
    """``handler``, with ``nothing`` as the answer where it fails: the log has the reason."""

    @functools.wraps(handler)
    def guard(*args: Any) -> T:
        try:
            return handler(*args)
        except JsonRpcInvalidParams:
            raise
        except Exception:
            log.exception("%s failed", name)
            return nothing

    return guard


@dataclass(frozen=True)
class Parts:
    """What handlers call; ``features`` do the actions."""

    sync: DocumentSync
    trust: WorkspaceTrust
    watcher: FileWatcher
    settings: SettingsSync
    suggestions: SuggestionActions
    candidates: CandidateTexts
    pages: Pages
    features: tuple[Feature, ...]


def build(open_service: Callable[[Surface], Service], parser: ParserProcess | None = None) -> AccelOptServer:
    """Return a server with every feature registered, not yet started."""
    server = AccelOptServer(open_service, parser or ParserProcess())
    parts = build_parts(server.session)
    _lifecycle(server, parts)
    _documents(server, parts)
    _answers(server)
    _own_documents(server, parts)
    _commands(server, parts)
    return server


def build_parts(session: Session) -> Parts:
    """Make the parts of a server; each gets what it needs by its constructor, and listens to what it has to hear."""
    settings, profiles, pages = SettingsSync(session), Profiles(session), Pages(session.editor)
    Publisher(session, settings)
    trust = WorkspaceTrust(session, settings)
    sync = DocumentSync(session, profiles, trust, settings)
    watcher = FileWatcher(session, settings, sync)
    suggestions = SuggestionActions(session, sync.text_changes)
    features = (
        profiles,
        trust,
        suggestions,
        Searches(session, pages),
        VersionChecks(session, suggestions),
        Explanations(session, suggestions, pages),
        ChangeLearning(session, profiles.texts),
        MemoryView(session, pages),
        TargetComparison(session, pages),
        PictureView(session, profiles),
        KernelCosts(session),
        NewFiles(session),
        NewerNames(session),
        LimitFix(session),
        Silence(session),
        Recordings(session, profiles),
        Comparisons(session, pages, profiles.texts),
        FirstSteps(session, settings),
    )
    candidates = CandidateTexts(session, suggestions)
    return Parts(
        sync,
        trust,
        watcher=watcher,
        settings=settings,
        suggestions=suggestions,
        candidates=candidates,
        pages=pages,
        features=features,
    )


def _lifecycle(server: AccelOptServer, parts: Parts) -> None:
    session = server.session

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        client = session.editor.client = Client.of(params)
        folders = session.documents.folders
        workspace = Workspace(
            folders,
            trusted=frozenset(folder.resolve() for folder in folders if client.trusted),
            restricted=client.trusted is False,
            pythons={Path(folder): python for folder, python in client.pythons.items()},
        )
        session.configuration.changed(client.settings, workspace)
        session.tasks.start(session.service.start())

    @server.feature(types.INITIALIZED)
    def initialized(params: types.InitializedParams) -> None:
        steps = (
            parts.settings.reconfigure,
            functools.partial(session.editor.serve_documents, (SCHEME, PAGE_SCHEME)),
            session.editor.watch_settings,
            parts.watcher.start,
            session.parser.start,
            server.prepare_answers,
        )
        session.tasks.start(server.begin(steps))

    @server.feature(types.SHUTDOWN)
    async def shutdown(params: None) -> None:
        await server.close()

    @server.feature(types.EXIT)
    async def leave(params: None) -> None:
        await server.close()  # an editor need not wait for the answer to shutdown

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders_changed(params: types.DidChangeWorkspaceFoldersParams) -> None:
        before, folders = session.configuration.workspace, session.documents.folders
        rest = frozenset(folder.resolve() for folder in folders) & before.trusted
        session.configuration.changed(workspace=replace(before, folders=folders, trusted=rest))
        session.tasks.start(parts.settings.reconfigure())

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def changed(params: types.DidChangeConfigurationParams) -> None:
        session.tasks.start(parts.settings.reconfigure(params.settings))


def _documents(server: AccelOptServer, parts: Parts) -> None:
    session = server.session

    def on(method: str, handler: Callable[[Any], None], options: Any = None) -> None:
        server.feature(method, options)(guarded(method, handler, None))

    def changed_outside(params: types.DidChangeWatchedFilesParams) -> None:
        for event in params.changes:
            path = file_path(event.uri)
            if path is None:
                continue
            if event.type == types.FileChangeType.Deleted:
                parts.watcher.deleted(path)
            else:
                parts.watcher.changed(path)

    def opened(params: types.DidOpenTextDocumentParams) -> None:
        parts.sync.opened(params.text_document.uri)

    def closed(params: types.DidCloseTextDocumentParams) -> None:
        parts.sync.closed(params.text_document.uri)
        session.work_changed()  # the status may have been about its folder

    def edited(params: types.DidChangeTextDocumentParams) -> None:
        moved = LineMap.of(convert.text_changes(params.content_changes))
        parts.sync.edited(params.text_document.uri, moved)

    on(types.TEXT_DOCUMENT_DID_OPEN, opened)
    on(types.TEXT_DOCUMENT_DID_CHANGE, edited)
    on(types.TEXT_DOCUMENT_DID_SAVE, lambda p: parts.sync.saved(p.text_document.uri))
    on(types.TEXT_DOCUMENT_DID_CLOSE, closed)
    on(types.WORKSPACE_DID_CHANGE_WATCHED_FILES, changed_outside)


def _answers(server: AccelOptServer) -> None:
    """Requests about what is known: they never wait."""
    session = server.session

    def on(method: str, handler: Callable[[Any], Any], nothing: Any, options: Any = None) -> None:
        server.feature(method, options)(guarded(method, handler, nothing))

    def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        state = session.state.get(params.text_document.uri)
        settings = session.configuration.cached(state.path) if state else None
        if state is None or settings is None or not settings.editor.lens:
            return []
        targets = settings.targets(k.kernel for k in state.kernels)
        items = lens.lenses(state, session.jobs.running(state.uri), targets, settings.editor.lens_detail)
        return convert.code_lenses(items, session.editor.client)

    def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
        state = session.state.get(params.text_document.uri)
        settings = session.configuration.cached(state.path) if state else None
        if state is None or settings is None or not settings.editor.hints:
            return []
        text = session.documents.lines(session.documents.opened(state.uri))
        items = hints.hints(state, text.lines, params.range.start.line + 1, params.range.end.line + 1)
        return convert.inlay_hints(items, text)

    def show_hover(params: types.HoverParams) -> types.Hover | None:
        uri, client = params.text_document.uri, session.editor.client
        markdown = client.markdown_hover
        state, place = session.state.get(uri), session.documents.place(uri, params.position)
        if state is None:
            return None
        parts = [
            operation_hover(*place, session.versions.cached(state.path), markdown) if place else None,
            hover.hover(state, params.position.line + 1, markdown, client.hover_pictures),
        ]
        content = "\n\n---\n\n".join(part for part in parts if part)
        return convert.hover(content or None, client)

    def completion(params: types.CompletionParams) -> list[types.CompletionItem]:
        path = file_path(params.text_document.uri)
        place = session.documents.place(params.text_document.uri, params.position)
        if path is None or place is None:
            return []
        items = completions(*place, session.versions.cached(path))
        return convert.completions(items, session.editor.client)

    def show_signature(params: types.SignatureHelpParams) -> types.SignatureHelp | None:
        path, client = file_path(params.text_document.uri), session.editor.client
        place = session.documents.place(params.text_document.uri, params.position)
        if path is None or place is None:
            return None
        about = signature_help(*place, session.versions.cached(path), client.markdown_signatures)
        return convert.signature_help(about, client) if about is not None else None

    def code_action(params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
        state = session.state.get(params.text_document.uri)
        place = session.documents.place(params.text_document.uri, params.range.start)
        if state is None or place is None:
            return []
        first, last, context = params.range.start.line + 1, params.range.end.line + 1, params.context
        only = context.only
        versions = session.versions.known(state.path)
        lines = place.lines[first - 1 : last]
        offers = list(stub_actions(state.uri, lines, versions, only)) if versions is not None else []
        if context.trigger_kind is types.CodeActionTriggerKind.Automatic and not only:
            only = [SUGGESTION, QUICKFIX]  # a light bulb is for what is better or broken
            if state.kernel_at(first) is None:
                return convert.code_actions(offers, session.editor.client)
        offers += code_actions(state, first, last=last, jobs=session.jobs.running(state.uri), only=only)
        return convert.code_actions(offers, session.editor.client, context.diagnostics)

    on(types.TEXT_DOCUMENT_CODE_LENS, code_lens, [], types.CodeLensOptions(resolve_provider=False))
    on(types.TEXT_DOCUMENT_INLAY_HINT, inlay_hint, [], types.InlayHintOptions(resolve_provider=False))
    on(types.TEXT_DOCUMENT_HOVER, show_hover, None)
    triggers = types.CompletionOptions(trigger_characters=COMPLETION_TRIGGERS, resolve_provider=False)
    on(types.TEXT_DOCUMENT_COMPLETION, completion, [], triggers)
    brackets = types.SignatureHelpOptions(trigger_characters=SIGNATURE_TRIGGERS)
    on(types.TEXT_DOCUMENT_SIGNATURE_HELP, show_signature, None, brackets)
    options = types.CodeActionOptions(code_action_kinds=list(KINDS), resolve_provider=True)
    on(types.TEXT_DOCUMENT_CODE_ACTION, code_action, [], options)


def _own_documents(server: AccelOptServer, parts: Parts) -> None:
    """Requests about suggestions: the edit of an action, and documents that only the server has."""

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        return await resolved(server.session, parts.suggestions, action)

    @server.feature(types.WORKSPACE_TEXT_DOCUMENT_CONTENT)
    async def content(params: types.TextDocumentContentParams) -> types.TextDocumentContentResult:
        return types.TextDocumentContentResult(text=await own_document(parts, params.uri))

    @server.feature(CANDIDATE_METHOD)
    async def content_by_name(params: Any) -> dict[str, str]:
        return {"text": await own_document(parts, str(getattr(params, "uri", "")))}


async def resolved(
    session: Session, suggestions: SuggestionActions, action: types.CodeAction
) -> types.CodeAction:
    """Return a suggestion's action with its edit against the current text; without one, and a message, where
    it no longer fits."""
    if action.data is None:
        return action  # nothing to add: some clients resolve every action that has no edit
    data = action.data if isinstance(action.data, dict) else {}
    uri = data.get("uri")
    try:
        if not isinstance(uri, str) or not isinstance(data.get("id"), str):
            raise UserError("This action holds no suggestion; ask for the code actions again.")
        suggestion, _ = await suggestions.find(data["id"], uri)
        edit = await suggestions.edit_of(suggestion, uri)
        if isinstance(edit, ApplyRefusal):
            raise UserError(edit.reason)
    except UserError as problem:
        session.editor.say(str(problem), "warning")
        return action
    action.edit = edit
    action.command = convert.accept_command(suggestion.id, uri)
    return action


async def own_document(parts: Parts, uri: str) -> str:
    """Return the text of a document of the server's own: a candidate or a page."""
    try:
        if uri.startswith(f"{PAGE_SCHEME}:"):
            return parts.pages.text(uri)
        return await parts.candidates.text(uri)
    except UserError as problem:
        raise JsonRpcInvalidParams(str(problem)) from None


def _commands(server: AccelOptServer, parts: Parts) -> None:
    """Register a command for each action, with the handler of the part that does it."""
    handlers: dict[str, Handler] = {"cancel": functools.partial(cancel, server.session)}
    for feature in parts.features:
        handlers |= feature.actions()
    for action in ACTIONS.values():
        server.command(action.command)(_command(server.session, parts, action, handlers[action.name]))


def _command(session: Session, parts: Parts, action: Action, handler: Handler) -> Any:
    # pygls reads annotations to see who wants the server; on Python 3.10 it fails on Any, and object wants it.
    async def command(*values):  # type: ignore[no-untyped-def]  # so it has none
        try:
            args = Arguments.of(action, values)
            if action.runs:
                await parts.settings.settled()
                await parts.trust.require(args.uri, action.runs)
            done = handler(args)
            if inspect.isawaitable(done):
                done = await done
        except UserError as problem:
            session.editor.say(str(problem), "warning")
            return {"job": None, "message": str(problem)}
        return {"job": done.id} if isinstance(done, BackgroundJob) else done

    return command


def cancel(session: Session, args: Arguments) -> dict[str, Any]:
    """Cancel the job that is named, or those of a document, or all."""
    jobs = [j.id for j in session.jobs.running(args.uri)] if args.job is None else [args.job]
    cancelled = [job for job in jobs if session.jobs.cancel(job)]
    return {"job": cancelled[0] if cancelled else None, "cancelled": cancelled}
