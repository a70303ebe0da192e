"""The server: what it knows, what runs, and the parts that work on both."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import cattrs
from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from accelopt_lsp.backend.parser import ParserProcess
from accelopt_lsp.backend.protocol import Backend
from accelopt_lsp.errors import HostUnavailableError, UserError
from accelopt_lsp.server.candidates import SCHEME, CandidateTexts
from accelopt_lsp.server.choosing import Choosing
from accelopt_lsp.server.client import Client
from accelopt_lsp.server.configuration import Configuration, editor_settings
from accelopt_lsp.server.document_sync import Editing
from accelopt_lsp.server.documents import Documents
from accelopt_lsp.server.editor_models import EditorQuestions
from accelopt_lsp.server.explanations import Explanations
from accelopt_lsp.server.file_watcher import Watching
from accelopt_lsp.server.model_access import Consenting
from accelopt_lsp.server.pages import SCHEME as PAGE_SCHEME
from accelopt_lsp.server.pages import Pages
from accelopt_lsp.server.problem_files import ProblemFiles
from accelopt_lsp.server.profiles import Profiles
from accelopt_lsp.server.publisher import Publisher
from accelopt_lsp.server.run_history import RunHistory
from accelopt_lsp.server.searches import Searches
from accelopt_lsp.server.status import StatusLine
from accelopt_lsp.server.suggestions import Decisions
from accelopt_lsp.state.jobs import BackgroundJob, JobRegistry
from accelopt_lsp.state.state_store import StateStore
from accelopt_lsp.version import own_version

log = logging.getLogger(__name__)

T = TypeVar("T")


def ready_converter() -> cattrs.Converter:
    """pygls' converter with the code for the usual answers generated ahead: the first one would take 20 ms more."""
    converter: cattrs.Converter = default_converter()  # type: ignore[no-untyped-call]  # pygls'
    at = types.Range(types.Position(0, 0), types.Position(0, 0))
    command = types.Command("", "", arguments=[{}])
    action = types.CodeAction("", kind="", command=command, data={})
    samples: dict[str, Any] = {
        types.TEXT_DOCUMENT_CODE_LENS: [types.CodeLens(at, command)],
        types.TEXT_DOCUMENT_INLAY_HINT: [types.InlayHint(at.start, "")],
        types.TEXT_DOCUMENT_HOVER: types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "")),
        types.TEXT_DOCUMENT_CODE_ACTION: [action],
    }
    for method, sample in samples.items():
        request, response = types.METHOD_TO_TYPES[method][:2]
        converter.get_structure_hook(request)
        if response is not None:
            converter.unstructure(response(id=0, result=sample), unstructure_as=response)
    converter.get_structure_hook(types.METHOD_TO_TYPES[types.TEXT_DOCUMENT_DID_CHANGE][0])
    return converter


class AccelOptServer(LanguageServer):
    """Holds the board and the jobs. Handlers (``setup.py``) read the board; only jobs and flows write it."""

    def __init__(self, backend: Backend) -> None:
        super().__init__("accelopt-lsp", own_version(), converter_factory=ready_converter)
        self.backend = backend
        backend.host_problem = self.host_problem
        backend.memory_problem = lambda text: self.say(text, types.MessageType.Warning)
        self.consenting = Consenting(self)
        self.editor_questions = EditorQuestions(self)
        backend.complete = self.editor_questions.complete
        self.configuration = Configuration(lambda text: self.say(text, types.MessageType.Warning))
        self.client = Client()
        self.documents = Documents(self)
        self.reader = ParserProcess()
        self.status = StatusLine()
        self.publisher = Publisher(self)
        self.board = StateStore(changed=self.publisher.state_changed)
        self.jobs = JobRegistry(changed=self.jobs_changed, failed=self.job_failed)
        self.profiles = Profiles(self)
        self.searches = Searches(self)
        self.decisions = Decisions(self)
        self.choosing = Choosing(self)
        self.candidates = CandidateTexts(self)
        self.pages = Pages(self)
        self.explanations = Explanations(self)
        self.run_history = RunHistory(self)
        self.problem_files = ProblemFiles(self)
        self.editing = Editing(self)
        self.watching = Watching(self)
        self._closed = False
        self._background: set[asyncio.Task[None]] = set()

    def background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run quick follow-up work of a handler; what it raises is logged and ends nothing else."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background_done)
        return task

    async def answer(self, request: Coroutine[Any, Any, T]) -> T:
        """The client's answer to a request. Being cancelled stops the waiting, not the request: pygls fails on an
        answer to one that was taken back."""
        waiting = asyncio.ensure_future(request)
        waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(waiting)

    async def show_file(self, path: Path, take_focus: bool | None = None) -> None:
        """Have the client open a file; only for clients that say they can."""
        shown = types.ShowDocumentParams(path.as_uri(), take_focus=take_focus)
        await self.answer(self.window_show_document_async(shown))

    def say(self, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show a message to the person, for answers to what they asked for and for what they must know."""
        self.window_show_message(types.ShowMessageParams(kind, message))

    def note(self, message: str, kind: types.MessageType = types.MessageType.Log) -> None:
        """Write a line to the editor's log of this server."""
        self.window_log_message(types.LogMessageParams(kind, message))

    def jobs_changed(self) -> None:
        self.status.update(self.jobs.running())
        self.publisher.refresh()

    def host_problem(self, reason: str | None) -> None:
        """A configured host cannot be reached (why), or can again (None): said in the status, once."""
        if reason is None:
            self.status.host_up()
        else:
            self.status.host_down(reason)
        self.jobs_changed()

    def job_failed(self, job: BackgroundJob, error: Exception) -> None:
        """Tell why a job ended: an expected reason as it is, a bug as such."""
        if isinstance(error, HostUnavailableError):
            self.status.host_down(str(error))
            if job.kind == "optimize":
                self.say(str(error), types.MessageType.Warning)
        elif isinstance(error, UserError):
            self.say(str(error), types.MessageType.Warning)
        else:
            message = (
                f"{job.title} failed: {type(error).__name__}: {error}. The log of the server has the details."
            )
            self.say(message, types.MessageType.Error)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Errors outside any request go to the log, never into the person's face."""
        log.error("%s: %s", getattr(source, "__name__", source), error)

    async def begin(self) -> None:
        """After ``initialized``: ask the client for what needs asking, then serve the documents opened meanwhile."""
        self.status.update(self.jobs.running())
        for step in (self.reconfigure, self._register_dynamically, self.watching.start, self.reader.start):
            try:
                await step()
            except Exception:  # a client that refuses one thing gets the others
                log.exception("%s failed", step.__name__)

    async def reconfigure(self, pushed: object = None) -> None:
        """Read the settings again: they, or the editor's part of them (``pushed``, where it sends them), changed."""
        editor: dict[str, Any] = dict(self.client.settings)
        if self.client.has("workspace", "configuration"):
            item = types.ConfigurationItem(section="accelopt")
            answer = await self.workspace_configuration_async(types.ConfigurationParams([item]))
            editor |= editor_settings(answer[0] if answer else None)
        elif isinstance(pushed, dict):
            editor |= editor_settings(pushed.get("accelopt"))
        before = {state.uri: self.configuration.known(state.path) for state in self.board.files()}
        self.configuration.changed(editor)
        root = self.workspace.root_path
        targets = (await self.configuration.of(str(Path(root or Path.cwd()) / "kernel.py"))).target
        self.status.target = f"{targets.triton} (Triton), {targets.nki} (NKI)"
        self.status.update(self.jobs.running())
        for uri, settings in before.items():
            state = self.board.get(uri)
            if state is None:
                continue
            now = await self.configuration.of(state.path)
            self.publisher.state_changed(None, state)
            if settings is not None and now != settings:
                self.editing.reconfigured(uri)

    async def _register_dynamically(self) -> None:
        registrations = []
        if self.client.has("workspace", "text_document_content", "dynamic_registration"):
            options = types.TextDocumentContentRegistrationOptions(schemes=[SCHEME, PAGE_SCHEME])
            method = types.WORKSPACE_TEXT_DOCUMENT_CONTENT
            registrations.append(types.Registration("accelopt-candidates", method, options))
        if self.client.has("workspace", "did_change_configuration", "dynamic_registration"):
            method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
            registrations.append(types.Registration("accelopt-settings", method, {"section": "accelopt"}))
        if registrations:
            await self.client_register_capability_async(types.RegistrationParams(registrations))

    async def close(self) -> None:
        """End everything that runs, before the process ends. The second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self.watching.close()
        self.editing.close()
        for task in self._background:
            task.cancel()
        await self.jobs.close()
        self.reader.close()
        await self.backend.close()

    def _background_done(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work failed", exc_info=error)
            if isinstance(error, UserError):
                self.say(str(error), types.MessageType.Warning)
