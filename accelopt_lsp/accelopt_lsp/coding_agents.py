"""The tools that ``accelopt mcp`` offers to coding agents. Each runs a command of ``accelopt`` in a process of its own
and answers with that command's JSON object."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

try:  # mcp 2 and 1 name the same things differently
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver import MCPServer as Server
    from mcp.server.mcpserver.exceptions import ToolError
except ImportError:
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as Server
    from mcp.server.fastmcp.exceptions import ToolError

from accelopt_lsp.own_process import own_process
from accelopt_profiling.waiting import within

INSTRUCTIONS = """What Triton and NKI kernels cost, and faster versions of them that were checked. Start with
`profile`; `optimize` searches; after a rewrite of your own use `verify` before you claim anything. Every number says
how it is known: measured, executed, compiled, estimated or not measured. An estimate is no measurement."""

#: How many commands run at a time; more wait.
_AT_A_TIME = 2

#: How long a command that is cancelled may take to end with what it has, in seconds; then it is killed.
_PATIENCE = 15.0

#: The longest line of progress that is passed on.
_LINE = 300


class Tools:
    """The tools, for kernel files below ``root``. Nothing outside of it is read as a kernel or changed."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._turn = asyncio.Semaphore(_AT_A_TIME)
        self._ending: set[asyncio.Task[None]] = set()

    async def profile(self, file: str, ctx: Context, problem: str = "", target: str = "") -> dict[str, Any]:
        """Return what the kernels of a file cost and whether they are right: time, percent of peak, what
        limits them, what each line costs, and findings. `problem` is a file with inputs and a reference;
        without it the file itself or its neighbour `<stem>_problem.py` has them. `target` is the hardware,
        such as h100 or trn2."""
        options = {"problem": self._path(problem) if problem else "", "target": target}
        return await self._run(ctx, "profile", self._path(file), options=options)

    async def optimize(
        self, file: str, ctx: Context, problem: str = "", kernel: str = "", target: str = "", budget: str = "60",
        ask_model: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Search for faster versions of a file's kernels. Each suggestion passed the gate: it is correct, complete and
        honest, and comes with a diff, its speedup and an id for `accept`. `budget` is a number of candidates or such
        as "candidates=60,minutes=5". The configured model is asked only with `ask_model`, and only where the person
        agreed to that."""
        options = {"problem": self._path(problem) if problem else "", "kernel": kernel, "target": target}
        flags = () if ask_model else ("--no-model",)
        return await self._run(
            ctx, "optimize", self._path(file), flags=flags, options={**options, "budget": budget}
        )

    async def verify(self, candidate: str, problem: str, ctx: Context, original: str = "") -> dict[str, Any]:
        """Return whether a rewritten kernel file is correct, complete and honest, against the problem's
        reference on inputs drawn anew. `original` is the file before the rewrite."""
        options = {"problem": self._path(problem), "original": self._path(original) if original else ""}
        return await self._run(ctx, "verify", self._path(candidate), options=options)

    async def accept(self, id: str, ctx: Context) -> dict[str, Any]:
        """Apply a suggestion of `optimize` to its file and remember it. Ask the person first: this changes the file."""
        record = await self._run(ctx, "memory show", id)
        entry = record.get("entry", {}).get("body", {})
        self._path(str(entry.get("file", "")))
        return await self._run(ctx, "accept", id)

    async def reject(self, id: str, ctx: Context, reason: str = "") -> dict[str, Any]:
        """Remember that a suggestion is not wanted, so that it is not offered again."""
        return await self._run(ctx, "reject", id, options={"reason": reason})

    async def memory_search(self, words: str, ctx: Context, limit: int = 20) -> dict[str, Any]:
        """Find what was learned before: accepted slow-fast pairs, traps (rewrites that failed or were slower) and
        rejections that hold every one of the words."""
        return await self._run(ctx, "memory search", *words.split(), options={"limit": str(limit)})

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

    async def _run(
        self,
        ctx: Context,
        command: str,
        *arguments: str,
        flags: tuple[str, ...] = (),
        options: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return the JSON object of one command; its remarks become progress. Cancelling ends the command.

        After "--" no argument is taken for an option.

        Raises:
            ToolError: the command could not do it, with its reason.
        """
        words = [
            *flags,
            *(f"--{name}={value}" for name, value in (options or {}).items() if value),
            "--json",
            "--",
        ]
        line = [*own_process("accelopt_lsp.cli.main"), *command.split(), *words, *arguments]
        async with self._turn:
            process = await asyncio.create_subprocess_exec(
                *line, cwd=self.root, start_new_session=True, limit=1 << 26,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            try:
                assert process.stdout is not None
                printed, _ = await asyncio.gather(process.stdout.read(), self._pass_on(ctx, process))
                code = await process.wait()
            finally:
                if process.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        process.terminate()  # which it answers by ending with what it has
                    ending = asyncio.ensure_future(_ended(process))
                    self._ending.add(ending)
                    ending.add_done_callback(self._ending.discard)
        return _answer(command, code, printed)

    async def _pass_on(self, ctx: Context, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        number = 0
        async for line in process.stderr:
            number += 1
            text = line.decode(errors="replace").strip()[:_LINE]
            if text:
                await ctx.report_progress(number, None, text)


def server(root: Path) -> Any:
    """Return the server with its tools, not yet running."""
    tools_server = Server("accelopt", instructions=INSTRUCTIONS)
    for tool in Tools(root).all():
        tools_server.add_tool(tool)
    return tools_server


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Wait for a command that was asked to end, and kill it with all that it started where it does not."""
    with contextlib.suppress(asyncio.TimeoutError, ProcessLookupError):
        await within(_PATIENCE, process.wait())
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _answer(command: str, code: int, printed: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(printed)
    except ValueError:
        raise ToolError(f"accelopt {command} ended with exit code {code} and no answer.") from None
    if not isinstance(answer, dict):
        raise ToolError(f"accelopt {command} answered with something other than an object.")
    if "error" in answer and code:
        raise ToolError(str(answer["error"].get("message", answer["error"])))
    return answer
