"""The tools that ``accelopt mcp`` offers to coding agents: a service's answers, as the commands' JSON objects."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

try:  # mcp 2 and 1 name the same things differently
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver import MCPServer as Server
    from mcp.server.mcpserver.exceptions import ToolError
except ImportError:
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as Server
    from mcp.server.fastmcp.exceptions import ToolError

from accelopt_lsp.errors import UserError, file_fault
from accelopt_lsp.own_process import SERVICE_OF_COMMANDS
from accelopt_lsp.resources import read_file, read_source, settings_for
from accelopt_lsp.search_outcome import SearchOutcome, continuing
from accelopt_lsp.search_plan import budget_of
from accelopt_lsp.service.process import ProcessService
from accelopt_lsp.service.protocol import FileRequest, SearchRequest, Service
from accelopt_lsp.service.surface import Surface
from accelopt_lsp.shapes import file_object, verdict_object
from accelopt_lsp.stderr import say
from accelopt_lsp.suggestion_files import apply_to_file, suggestion_of
from accelopt_profiling.plain import to_plain
from accelopt_profiling.waiting import within

INSTRUCTIONS = """What Triton and NKI kernels cost, and faster versions of them that were checked. Start with
`profile`; `optimize` searches; after a rewrite of your own use `verify` before you claim anything. Every number says
how it is known: measured, executed, compiled, estimated or not measured. An estimate is no measurement."""

#: How many requests are worked on at a time; more wait.
_AT_A_TIME = 2

#: How long a search that is cancelled may take to end with what it has, in seconds; then it is cut off.
_PATIENCE = 15.0

#: The longest line of progress that is passed on.
_LINE = 300


class Tools:
    """The tools, for kernel files below ``root``. Nothing outside of it is read as a kernel or changed."""

    def __init__(self, root: Path, service: Service) -> None:
        self.root, self._service = root.resolve(), service
        self._turn = asyncio.Semaphore(_AT_A_TIME)
        self._background: set[asyncio.Future[None]] = set()

    async def profile(self, file: str, problem: str = "", target: str = "") -> dict[str, Any]:
        """Return what the kernels of a file cost and whether they are right: time, percent of peak, what
        limits them, what each line costs, and findings. `problem` is a file with inputs and a reference;
        without it the file itself or its neighbour `<stem>_problem.py` has them. `target` is the hardware,
        such as h100 or trn2."""

        async def work() -> dict[str, Any]:
            request = await self._request(file, problem, target)
            async with aclosing(self._service.profile(request)) as growing:
                *_, last = [measurement async for measurement in growing]
            return file_object(replace(request.without_ignored(last), file=request.name))

        return await self._answer(work())

    async def optimize(
        self, file: str, ctx: Context, problem: str = "", kernel: str = "", target: str = "", budget: str = "60",
        ask_model: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Search for faster versions of a file's kernels. Each suggestion passed the gate: it is correct, complete and
        honest, and comes with a diff, its speedup and an id for `accept`. `budget` is a number of candidates or such
        as "candidates=60,minutes=5". The configured model is asked only with `ask_model`, and only where the person
        agreed to that."""

        async def work() -> dict[str, Any]:
            request = await self._request(file, problem, target, kernel)
            limits = budget_of(request.settings, budget)
            search = SearchRequest(job=uuid4().hex, ask_model=ask_model, budget=limits)
            outcome = SearchOutcome(self._progress(ctx))
            following = asyncio.ensure_future(outcome.follow(self._service, request, kernel or None, search))
            try:
                await asyncio.shield(following)
            except asyncio.CancelledError:
                self._start(self._stop(search.job, following))
                raise
            options = {"problem": problem and self._path(problem), "kernel": kernel, "target": target}
            flags = [f"--{name}={value}" for name, value in {**options, "budget": budget}.items() if value]
            words = ["optimize", *([] if ask_model else ["--no-model"]), *flags, "--json", "--", request.name]
            return outcome.as_object(request.name, continuing(words))

        return await self._answer(work())

    async def verify(self, candidate: str, problem: str, original: str = "") -> dict[str, Any]:
        """Return whether a rewritten kernel file is correct, complete and honest, against the problem's
        reference on inputs drawn anew. `original` is the file before the rewrite."""

        async def work() -> dict[str, Any]:
            text = await asyncio.to_thread(read_source, Path(self._path(candidate)))
            checked = await self._service.verify(await self._request(original or candidate, problem), text)
            return verdict_object(checked.verdict)

        return await self._answer(work())

    async def accept(self, id: str) -> dict[str, Any]:
        """Apply a suggestion of `optimize` to its file and remember it. Ask the person first: this changes the file."""

        async def work() -> dict[str, Any]:
            suggestion, settings = await suggestion_of(self._service, id)
            self._path(suggestion.file)
            changed = await asyncio.to_thread(apply_to_file, suggestion)
            pair = await self._service.accept(suggestion.id, settings)
            return {"id": suggestion.id, "file": suggestion.file, "applied": changed, "pair": pair}

        return await self._answer(work())

    async def reject(self, id: str, reason: str = "") -> dict[str, Any]:
        """Remember that a suggestion is not wanted, so that it is not offered again."""

        async def work() -> dict[str, Any]:
            suggestion, settings = await suggestion_of(self._service, id)
            rejection = await self._service.reject(suggestion.id, settings, reason)
            return {"id": suggestion.id, "rejection": rejection}

        return await self._answer(work())

    async def memory_search(self, words: str, limit: int = 20) -> dict[str, Any]:
        """Find what was learned before: accepted slow-fast pairs, traps (rewrites that failed or were slower) and
        rejections that hold every one of the words."""

        async def work() -> dict[str, Any]:
            settings = await asyncio.to_thread(settings_for, self.root)
            hits = await self._service.search_memory(words, limit, settings)
            return {"query": " ".join(words.split()), "results": hits}

        return await self._answer(work())

    def all(self) -> list[Callable[..., Awaitable[dict[str, Any]]]]:
        return [self.profile, self.optimize, self.verify, self.accept, self.reject, self.memory_search]

    def _path(self, file: str) -> str:
        """Return the file below the root. Raises ToolError."""
        path = (self.root / file).resolve()
        if not path.is_relative_to(self.root):
            raise ToolError(f"{file} is outside of {self.root}, where these tools work.")
        if not path.is_file():
            raise ToolError(f"{self.root} has no file {file}.")
        return str(path)

    async def _request(self, file: str, problem: str = "", target: str = "", kernel: str = "") -> FileRequest:
        path, flags = Path(self._path(file)), {"problem": self._path(problem) if problem else None}

        def read() -> FileRequest:
            settings = settings_for(path, flags)
            return read_file(path, settings, target or None, kernels=[kernel] if kernel else [])

        return await asyncio.to_thread(read)

    async def _answer(self, work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """Return what ``work`` comes to, as JSON. Raises ToolError: it failed, and why."""
        async with self._turn:
            try:
                answer: dict[str, Any] = to_plain(await work)
            except UserError as problem:
                raise ToolError(str(problem)) from None
            except (OSError, MemoryError, RecursionError, UnicodeError) as error:
                raise ToolError(file_fault(error) or str(error)) from None
        return answer

    async def _stop(self, job: str, following: asyncio.Future[None]) -> None:
        """Let a search end with what it has; after a while it is cut off."""
        await self._service.stop(job, "interrupted")
        with contextlib.suppress(asyncio.TimeoutError):
            await within(_PATIENCE, following)

    def _progress(self, ctx: Context) -> Callable[[str], None]:
        """Return what passes lines on to the agent."""
        number = 0

        def line(text: str) -> None:
            nonlocal number
            number += 1
            self._start(ctx.report_progress(number, None, text.strip()[:_LINE]))

        return line

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


class AgentSurface(Surface):
    """Says on standard error, which is the agent's log, what the service has to say."""

    def memory_problem(self, reason: str) -> None:
        say(f"Nothing of this is remembered. {reason}")

    def isolation_problem(self, line: str) -> None:
        say(line)


def server(root: Path) -> Any:
    """Return the server with its tools, not yet running; its service ends with this process."""
    service = cast("Service", ProcessService(AgentSurface(), SERVICE_OF_COMMANDS))
    tools_server = Server("accelopt", instructions=INSTRUCTIONS)
    for tool in Tools(root, service).all():
        tools_server.add_tool(tool)
    return tools_server
