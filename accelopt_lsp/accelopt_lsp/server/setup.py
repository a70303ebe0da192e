"""Each LSP method registered once. A handler reads the board or starts work, and a failing one ends nothing else."""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from accelopt_agent.suggestions.apply import ApplyRefusal
from accelopt_lsp.errors import UserError
from accelopt_lsp.features import actions, hints, hover, lens
from accelopt_lsp.server import candidates, convert, pages
from accelopt_lsp.server import status as status_line
from accelopt_lsp.server.client import Client
from accelopt_lsp.server.commands import Arguments
from accelopt_lsp.server.documents import file_path
from accelopt_lsp.server.server import AccelOptServer
from accelopt_lsp.state.jobs import BackgroundJob
from accelopt_profiling.measurement import Dialect

log = logging.getLogger(__name__)

T = TypeVar("T")

KINDS = [
    actions.SUGGESTION,
    actions.OPTIMIZE,
    actions.PROFILE,
    actions.PAUSE,
    actions.CANCEL,
    actions.RUNS,
    actions.EXPLAIN,
    actions.REJECT,
    actions.QUICKFIX,
]


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


def register(server: AccelOptServer) -> None:
    """Register every method and command on ``server``."""
    _lifecycle(server)
    _documents(server)
    _answers(server)
    _commands(server)


def _lifecycle(server: AccelOptServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.client = Client.of(params)
        server.configuration.trusted = server.status.trusted = server.client.trusted
        server.configuration.changed(server.client.settings)
        if server.client.status:
            server.status.send = lambda status: server.protocol.notify(status_line.METHOD, status)
        server.status.log = server.note
        server.background(server.backend.start())

    @server.feature(types.INITIALIZED)
    def initialized(params: types.InitializedParams) -> None:
        server.background(server.begin())

    @server.feature(types.SHUTDOWN)
    async def shutdown(params: None) -> None:
        await server.close()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def changed(params: types.DidChangeConfigurationParams) -> None:
        server.background(server.reconfigure(params.settings))


def _documents(server: AccelOptServer) -> None:
    def on(method: str, handler: Callable[[Any], None], options: Any = None) -> None:
        server.feature(method, options)(guarded(method, handler, None))

    def changed_outside(params: types.DidChangeWatchedFilesParams) -> None:
        for event in params.changes:
            path = file_path(event.uri)
            if path is None:
                continue
            if event.type == types.FileChangeType.Deleted:
                server.watching.deleted(path)
            else:
                server.watching.changed(path)

    on(types.TEXT_DOCUMENT_DID_OPEN, lambda p: server.editing.opened(p.text_document.uri))
    on(
        types.TEXT_DOCUMENT_DID_CHANGE,
        lambda p: server.editing.edited(p.text_document.uri, p.content_changes),
    )
    on(types.TEXT_DOCUMENT_DID_SAVE, lambda p: server.editing.saved(p.text_document.uri))
    on(types.TEXT_DOCUMENT_DID_CLOSE, lambda p: server.editing.closed(p.text_document.uri))
    on(types.WORKSPACE_DID_CHANGE_WATCHED_FILES, changed_outside)


def _answers(server: AccelOptServer) -> None:
    """Requests about what is known: they never wait."""

    def on(method: str, handler: Callable[[Any], Any], nothing: Any, options: Any = None) -> None:
        server.feature(method, options)(guarded(method, handler, nothing))

    def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        state = server.board.get(params.text_document.uri)
        settings = server.configuration.known(state.path) if state else None
        if state is None or settings is None or not settings.editor.lens:
            return []
        targets: dict[Dialect, str] = {"triton": settings.target.triton, "nki": settings.target.nki}
        found = lens.lenses(state, server.jobs.running(state.uri), targets)
        return convert.code_lenses(found, server.client)

    def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
        state = server.board.get(params.text_document.uri)
        settings = server.configuration.known(state.path) if state else None
        if state is None or settings is None or not settings.editor.hints:
            return []
        found = list(hints.hints(state, params.range.start.line + 1, params.range.end.line + 1))
        return convert.inlay_hints(found, server.documents.lines(state.uri)) if found else []

    def show_hover(params: types.HoverParams) -> types.Hover | None:
        state = server.board.get(params.text_document.uri)
        if state is None:
            return None
        content = hover.hover(state, params.position.line + 1, server.client.markdown_hover)
        return convert.hover(content, server.client)

    def code_action(params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
        state = server.board.get(params.text_document.uri)
        if state is None:
            return []
        first, last, context = params.range.start.line + 1, params.range.end.line + 1, params.context
        only = context.only
        if context.trigger_kind is types.CodeActionTriggerKind.Automatic and not only:
            if state.kernel_at(first) is None:
                return []
            only = [actions.SUGGESTION, actions.QUICKFIX]  # a light bulb is for what is better or broken
        found = actions.actions(state, first, last, server.jobs.running(state.uri), only)
        return convert.code_actions(found, server.client, context.diagnostics)

    on(types.TEXT_DOCUMENT_CODE_LENS, code_lens, [], types.CodeLensOptions(resolve_provider=False))
    on(types.TEXT_DOCUMENT_INLAY_HINT, inlay_hint, [], types.InlayHintOptions(resolve_provider=False))
    on(types.TEXT_DOCUMENT_HOVER, show_hover, None)
    options = types.CodeActionOptions(code_action_kinds=list(KINDS), resolve_provider=True)
    on(types.TEXT_DOCUMENT_CODE_ACTION, code_action, [], options)

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        return await resolved(server, action)

    @server.feature(types.WORKSPACE_TEXT_DOCUMENT_CONTENT)
    async def content(params: types.TextDocumentContentParams) -> types.TextDocumentContentResult:
        return types.TextDocumentContentResult(text=await candidate(server, params.uri))

    @server.feature(candidates.METHOD)
    async def content_by_name(params: Any) -> dict[str, str]:
        return {"text": await candidate(server, str(getattr(params, "uri", "")))}


async def resolved(server: AccelOptServer, action: types.CodeAction) -> types.CodeAction:
    """A suggestion's action with its edit against the current text; without one, and a message, where it no longer
    fits."""
    if action.data is None:
        return action  # nothing to add: some clients resolve every action that has no edit
    data = action.data if isinstance(action.data, dict) else {}
    uri = data.get("uri")
    try:
        if not isinstance(uri, str) or not isinstance(data.get("id"), str):
            raise UserError("This action holds no suggestion; ask for the code actions again.")
        suggestion, _ = await server.decisions.find(Arguments(id=data["id"], uri=uri))
        edit = await server.decisions.edit_of(suggestion, uri)
        if isinstance(edit, ApplyRefusal):
            raise UserError(edit.reason)
    except UserError as problem:
        server.say(str(problem), types.MessageType.Warning)
        return action
    action.edit = edit
    action.command = convert.accept_command(suggestion.id, uri)
    return action


async def candidate(server: AccelOptServer, uri: str) -> str:
    """The text of a document of the server's own: a candidate or a page."""
    try:
        if uri.startswith(f"{pages.SCHEME}:"):
            return server.pages.text(uri)
        return await server.candidates.text(uri)
    except UserError as problem:
        raise JsonRpcInvalidParams(str(problem)) from None


def _commands(server: AccelOptServer) -> None:
    def on(name: str, run: Callable[[Arguments], Awaitable[dict[str, Any]]]) -> None:
        # pygls reads annotations to see who wants the server; on Python 3.10 it fails on Any, and object wants it.
        async def command(*given):  # type: ignore[no-untyped-def]  # so it has none
            try:
                return await run(Arguments.of(name, given))
            except UserError as problem:
                server.say(str(problem), types.MessageType.Warning)
                return {"job": None, "message": str(problem)}

        server.command(convert.server_command(name))(command)

    def trusted(name: str) -> None:
        if not server.client.trusted:
            raise UserError(f"This workspace is not trusted, so nothing of it is run: no {name}.")

    async def profile(args: Arguments) -> dict[str, Any]:
        trusted("profile")
        return started(server.profiles.ask(args.document("profile")))

    async def optimize(args: Arguments) -> dict[str, Any]:
        trusted("search")
        return started(server.searches.ask(args))

    async def pause(args: Arguments) -> dict[str, Any]:
        rest = [job.id for job in server.searches.pause(args)]
        return {"job": rest[0] if rest else None, "paused": rest}

    async def resume(args: Arguments) -> dict[str, Any]:
        trusted("search")
        going = [job.id for job in server.searches.resume(args)]
        return {"job": going[0] if going else None, "resumed": going}

    async def show_runs(args: Arguments) -> dict[str, Any]:
        return started(server.run_history.show(args.document("showRuns")))

    async def cancel(args: Arguments) -> dict[str, Any]:
        wanted = [j.id for j in server.jobs.running(args.uri) if args.job in (None, j.id)]
        if args.job is not None:
            wanted = [args.job]
        cancelled = [job for job in wanted if server.jobs.cancel(job)]
        return {"job": cancelled[0] if cancelled else None, "cancelled": cancelled}

    async def accept(args: Arguments) -> dict[str, Any]:
        return started(server.decisions.accept(args))

    async def versions(args: Arguments) -> dict[str, Any]:
        return {"versions": server.choosing.versions(args)}

    async def choose(args: Arguments) -> dict[str, Any]:
        return started(server.choosing.choose(args))

    async def reject(args: Arguments) -> dict[str, Any]:
        return started(server.decisions.reject(args))

    async def explain(args: Arguments) -> dict[str, Any]:
        return started(server.explanations.ask(args))

    async def create_problem(args: Arguments) -> dict[str, Any]:
        return started(server.problem_files.create(args))

    on("profile", profile)
    on("optimize", optimize)
    on("pause", pause)
    on("resume", resume)
    on("showRuns", show_runs)
    on("cancel", cancel)
    on("accept", accept)
    on("reject", reject)
    on("versions", versions)
    on("choose", choose)
    on("explain", explain)
    on("createProblem", create_problem)


def started(job: BackgroundJob) -> dict[str, Any]:
    return {"job": job.id}
