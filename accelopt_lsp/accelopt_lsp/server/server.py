"""The language server: the connection to the editor and what all parts share. ``setup.py`` builds the parts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

import cattrs
from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcInvalidRequest
from pygls.lsp.server import LanguageServer
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
    _params_field_structure_hook,
    _result_field_structure_hook,
    lsp_method,
)

from accelopt_agent.model.editor_request import EditorModelReply, EditorModelRequest
from accelopt_lsp.errors import HostUnavailableError, UserError, file_fault
from accelopt_lsp.server.client import SentCapabilities
from accelopt_lsp.server.configuration import SettingsCache
from accelopt_lsp.server.connection import EditorConnection
from accelopt_lsp.server.documents import Documents
from accelopt_lsp.server.first_message import encoded
from accelopt_lsp.server.kernel_files import KernelFiles
from accelopt_lsp.server.language_versions import LanguageVersionsCache
from accelopt_lsp.server.model_access import ConsentPrompt, EditorModelClient
from accelopt_lsp.server.session import Session
from accelopt_lsp.server.status import METHOD as STATUS
from accelopt_lsp.server.status import StatusLine
from accelopt_lsp.service.parser import ParserProcess
from accelopt_lsp.service.protocol import Service
from accelopt_lsp.service.surface import Surface
from accelopt_lsp.state.jobs import BackgroundJob, BackgroundTasks, JobRegistry
from accelopt_lsp.state.state_store import StateStore
from accelopt_profiling import __version__

log = logging.getLogger(__name__)


class EditorSurface(Surface):
    """``changed`` is called when the status says something else."""

    def __init__(
        self,
        editor: EditorConnection,
        status: StatusLine,
        models: EditorModelClient,
        changed: Callable[[], None],
    ) -> None:
        self._editor, self._status, self._models, self._changed = editor, status, models, changed

    def host_problem(self, reason: str | None) -> None:
        """Say in the status, once, that a configured host cannot be reached (why), or can again (None)."""
        if reason is None:
            self._status.host_up()
        else:
            self._status.host_down(reason)
        self._changed()

    def memory_problem(self, reason: str) -> None:
        self._editor.say(reason, "warning")

    def isolation_problem(self, line: str) -> None:
        """Say in the status, as long as the server runs, that a host does not isolate kernels completely."""
        self._status.isolation = line
        self._status.log(line)
        self._changed()

    async def complete(self, question: EditorModelRequest) -> EditorModelReply:
        return await self._models.complete(question)


class AnsweringProtocol(LanguageServerProtocol):
    """pygls' protocol, which refuses a malformed request with an error.

    ``answered`` is the id of the request that has its answer already. If it ends in an error after all, the editor
    shows that as a message.
    """

    answered: int | str | None = None

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, Any]:
        """Leave pygls' answer out where there is one: it first has our own handler run, then takes a tenth of the
        server's start to build the answer."""
        steps = super().lsp_initialize(params)
        if self.answered is None:
            return (yield from steps)
        yield next(steps)
        return None

    def structure_message(self, data: dict[str, Any]) -> Any:
        number, method = data.get("id"), data.get("method", "")
        if "jsonrpc" in data and not (isinstance(method, str) and isinstance(number, (int, str, NoneType))):
            self._refuse(
                number, JsonRpcInvalidRequest.CODE, "The method or the id of a message cannot be read."
            )
            raise JsonRpcInvalidRequest(f"id {number!r}, method {method!r}")
        try:
            return super().structure_message(data)
        except JsonRpcException:
            if "method" in data:
                self._refuse(number, JsonRpcInvalidParams.CODE, f"The parameters of {method} cannot be read.")
            raise

    def _refuse(self, number: object, code: int, message: str) -> None:
        """Answer a request that cannot be read, where its id can."""
        if not isinstance(number, (int, str)) or self.writer is None:
            return
        if number == self.answered:
            self._show_late_error(message)
        else:
            refusal = {"code": code, "message": message}
            self.writer.write(encoded({"jsonrpc": "2.0", "id": number, "error": refusal}))

    def _send_response(
        self, msg_id: int | str, result: Any = None, error: types.ResponseError | None = None
    ) -> None:
        if self.answered is None or msg_id != self.answered:
            super()._send_response(msg_id, result, error)
        elif error is not None:
            self._show_late_error(error.message)
        else:
            self.answered = None

    def _execute_handler(
        self,
        msg_id: str | int,
        handler: Callable[..., Any],
        callback: Callable[[Any], object],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Let go of what a handler leaves behind: pygls keeps a future for each notification."""

        def ended(future: Any) -> None:
            self._request_futures.pop(msg_id, None)
            callback(future)

        super()._execute_handler(msg_id, handler, ended, args, kwargs)

    def _show_late_error(self, message: str) -> None:
        self.answered = None
        why = f"The server could not read what the editor can do: {message}"
        self.notify(types.WINDOW_SHOW_MESSAGE, types.ShowMessageParams(types.MessageType.Error, why))


#: Seconds after the start that the server has nothing better to do.
PREPARE_AFTER = 0.5


def message_converter() -> cattrs.Converter:
    """Return pygls' default converter, but with one reason for what cannot be read, not all: the code that is generated
    for each type is a third smaller."""
    converter = get_converter(cattrs.Converter(detailed_validation=False))
    converter.register_structure_hook(types.ClientCapabilities, SentCapabilities.of)
    converter.register_structure_hook(JsonRPCRequestMessage, _params_field_structure_hook)
    converter.register_structure_hook(JsonRPCNotification, _params_field_structure_hook)
    converter.register_structure_hook(JsonRPCResponseMessage, _result_field_structure_hook)
    return converter


class AccelOptServer(LanguageServer):
    """The connection to one editor, and the ``session`` that the parts share.

    Handlers (``setup.py``) read the state store; only jobs and document events write it.
    """

    protocol: AnsweringProtocol

    def __init__(self, open_service: Callable[[Surface], Service], parser: ParserProcess) -> None:
        self._converter = message_converter()
        super().__init__(
            "accelopt-lsp",
            __version__,
            protocol_cls=AnsweringProtocol,
            converter_factory=lambda: self._converter,
        )
        editor, state = EditorConnection(self), StateStore()
        configuration, documents = SettingsCache(lambda text: editor.say(text, "warning")), Documents(self)
        status = StatusLine(self._send_status, editor.note, self._untrusted, self._plain)
        jobs = JobRegistry(changed=self.work_changed, failed=self.job_failed)
        tasks = BackgroundTasks(failed=self.task_failed)
        models = EditorModelClient(editor, jobs)
        versions = LanguageVersionsCache(configuration)
        files = KernelFiles(
            editor, state, documents=documents, configuration=configuration, parser=parser, versions=versions
        )
        self.session = Session(
            editor=editor,
            state=state,
            jobs=jobs,
            tasks=tasks,
            documents=documents,
            configuration=configuration,
            versions=versions,
            status=status,
            consent=ConsentPrompt(editor, tasks),
            service=open_service(EditorSurface(editor, status, models, self.work_changed)),
            parser=parser,
            files=files,
            work_changed=self.work_changed,
        )
        documents.read.listen(lambda _: self._update_status())
        self._closing, self._closed = False, asyncio.Event()

    def work_changed(self) -> None:
        self._update_status()
        self.session.work()

    def _update_status(self) -> None:
        self.session.status.update(self.session.jobs.running())

    def job_failed(self, job: BackgroundJob, error: Exception) -> None:
        """Tell why a job ended: an expected reason as it is, a bug as such."""
        if isinstance(error, HostUnavailableError):
            self.session.status.host_down(str(error))
            if job.kind == "optimize":
                self.session.editor.say(str(error), "warning")
        elif isinstance(error, UserError) or file_fault(error):
            self.session.editor.say(file_fault(error, job.title) or str(error), "warning")
        else:
            message = (
                f"{job.title} failed: {type(error).__name__}: {error}. The log of the server has the details."
            )
            self.session.editor.say(message, "error")

    def task_failed(self, error: BaseException) -> None:
        if isinstance(error, UserError):
            self.session.editor.say(str(error), "warning")

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log an error outside any request: nobody asked for what failed, so nobody is shown it."""
        log.error("%s: %s", getattr(source, "__name__", source), error)

    async def begin(self, steps: Sequence[Callable[[], Awaitable[object]]]) -> None:
        """Take the steps, in turn, that follow ``initialized``: ask the client for what needs asking."""
        self._update_status()
        for step in steps:
            try:
                await step()
            except Exception:  # a client that refuses one thing gets the others
                log.exception("%s failed", getattr(step, "__qualname__", step))

    def _send_status(self, status: dict[str, Any]) -> None:
        if self.session.editor.client.status:
            self.session.editor.notify(STATUS, status)

    def _untrusted(self) -> Path | None:
        """Return a folder of open kernels that is not trusted, or of an editor that trusts nothing."""
        workspace = self.session.configuration.workspace
        if workspace.restricted:
            return next(iter(workspace.folders), Path.cwd())
        return next(
            (file.untrusted for file in self.session.state.files() if file.untrusted and file.kernels), None
        )

    def _plain(self) -> list[str]:
        """Return the open documents that were read and hold no kernel; what does not parse may hold one."""
        return [
            file.uri
            for file in self.session.state.files()
            if file.read and not (file.kernels or file.findings)
        ]

    async def prepare_answers(self) -> None:
        """Have the code for the usual answers generated ahead: the first one would take 20 ms more. It waits until the
        first lens is shown, and goes on in parts, so that it holds up nothing for long."""
        await asyncio.sleep(PREPARE_AFTER)
        converter, at = self._converter, types.Range(types.Position(0, 0), types.Position(0, 0))
        action = types.CodeAction("", kind="", command=types.Command("", "", arguments=[{}]), data={})
        samples: dict[str, Any] = {
            types.TEXT_DOCUMENT_INLAY_HINT: [types.InlayHint(at.start, "")],
            types.TEXT_DOCUMENT_HOVER: types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "")),
            types.TEXT_DOCUMENT_CODE_ACTION: [action],
            types.TEXT_DOCUMENT_COMPLETION: [types.CompletionItem("", kind=types.CompletionItemKind.Value)],
            types.TEXT_DOCUMENT_SIGNATURE_HELP: types.SignatureHelp([types.SignatureInformation("", "", [])]),
            types.TEXT_DOCUMENT_DID_CHANGE: None,
        }
        for method, sample in samples.items():
            request, response = types.METHOD_TO_TYPES[method][:2]
            converter.get_structure_hook(request)
            await asyncio.sleep(0)
            if response is not None:
                converter.unstructure(response(id=0, result=sample), unstructure_as=response)
                await asyncio.sleep(0)

    async def close(self) -> None:
        """End everything that runs, before the process ends. A second call waits for the first."""
        if self._closing:
            await self._closed.wait()
            return
        self._closing = True
        try:
            self.session.closing()
            self.session.tasks.close()
            await self.session.jobs.close()
            self.session.parser.close()
            await self.session.service.close()
        finally:
            self._closed.set()
