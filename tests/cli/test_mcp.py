"""``accelopt mcp`` as a coding agent meets it: the real client of the protocol against the real command."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.nki_kernels import SILU
from support.processes import descendants, is_running, stat_fields

from accelopt_lsp.service.protocol import FileRequest
from accelopt_memory.memory import Memory
from accelopt_profiling.measurement import FileMeasurement, Finding

if TYPE_CHECKING:
    from mcp import ClientSession


@asynccontextmanager
async def tools(root: Path) -> AsyncIterator[ClientSession]:
    """A session with the server for ``root``."""
    from mcp import (
        ClientSession,
        StdioServerParameters,
        stdio_client,
    )  # takes long: not while tests are collected

    command = StdioServerParameters(
        command=sys.executable, args=["-m", "accelopt_lsp", "mcp", "--root", str(root)], env=dict(os.environ)
    )
    async with stdio_client(command) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        yield session


def answer(result: Any) -> Any:
    """The object that a tool answered with."""
    assert not _failed(result), result.content[0].text
    return getattr(result, "structured_content", None) or result.structuredContent


def _failed(result: Any) -> bool:
    return bool(getattr(result, "is_error", False) or getattr(result, "isError", False))


@pytest.mark.slow
async def test_the_tools_say_what_they_are_for(home: Path) -> None:
    async with tools(home) as session:
        listed = {tool.name: tool for tool in (await session.list_tools()).tools}
    assert set(listed) == {"profile", "optimize", "verify", "accept", "reject", "memory_search"}
    for tool in listed.values():
        assert len(tool.description or "") > 60
        schema = getattr(tool, "input_schema", None) or tool.inputSchema
        assert "ctx" not in schema["properties"]


@pytest.mark.slow
async def test_what_cannot_be_done_is_said(home: Path) -> None:
    (home / "silu.py").write_text(SILU)
    cases = [
        ("profile", {"file": "missing.py"}, "has no file missing.py"),
        ("profile", {"file": "../../etc/passwd"}, "is outside of"),
        ("verify", {"candidate": "silu.py", "problem": "/etc/passwd"}, "is outside of"),
        ("accept", {"id": "nothing"}, "no entry 'nothing'"),
        ("accept", {"id": "--no-apply"}, "no entry '--no-apply'"),
        ("optimize", {"file": "silu.py", "budget": "many"}, "is no limit"),
    ]
    async with tools(home) as session:
        for tool, arguments, says in cases:
            result = await session.call_tool(tool, arguments)
            assert _failed(result), tool
            assert says in result.content[0].text
        assert answer(await session.call_tool("memory_search", {"words": "silu"}))["results"] == []


class OneProfile:
    """A service that has one profile of any file."""

    def __init__(self, measurement: FileMeasurement) -> None:
        self._measurement = measurement

    async def profile(self, request: FileRequest) -> AsyncGenerator[FileMeasurement, None]:
        yield self._measurement


async def test_a_coding_agent_is_told_no_finding_that_the_person_silenced(home: Path) -> None:
    """By a comment on the line or for the file, or by a setting of the project."""
    (home / "accelopt.toml").write_text('ignore = "small-programs"\n')
    rows = ["# accelopt: ignore-file=deprecated", *SILU.splitlines()]
    line = next(n for n, row in enumerate(rows, 1) if "nl.store(" in row)
    rows[line - 1] += "  # accelopt: ignore=small-dma"
    (home / "silu.py").write_text("\n".join(rows) + "\n")
    codes = ("small-dma", "deprecated", "small-programs", "exposed-latency")
    found = [Finding(code, line, "warning", code) for code in codes]
    from accelopt_lsp.coding_agents import Tools  # imports mcp

    service: Any = OneProfile(FileMeasurement("silu.py", findings=found, complete=True))
    told = await Tools(home, service).profile("silu.py")
    assert [finding["code"] for finding in told["findings"]] == ["exposed-latency"]


@pytest.mark.slow
async def test_from_the_profile_to_the_accepted_suggestion(home: Path) -> None:
    (home / "silu.py").write_text(SILU)
    messages: list[str] = []

    async def progress(number: float, total: float | None, message: str | None) -> None:
        messages.append(message or "")

    async with tools(home) as session:
        profiled = answer(await session.call_tool("profile", {"file": "silu.py"}))
        assert profiled["kernels"][0]["correctness"]["status"] == "passed"
        assert profiled["kernels"][0]["latency"]["known"] == "estimated"

        arguments = {"file": "silu.py", "budget": "3"}
        report = answer(await session.call_tool("optimize", arguments, progress_callback=progress))
        first = report["suggestions"][0]
        assert any("rule:" in line for line in messages)
        assert (home / "silu.py").read_text() == SILU

        assert answer(await session.call_tool("accept", {"id": first["id"]}))["applied"] is True
        changed = (home / "silu.py").read_text()
        assert changed != SILU
        (home / "old.py").write_text(SILU)
        checking = {"candidate": "silu.py", "problem": "old.py", "original": "old.py"}
        assert answer(await session.call_tool("verify", checking))["accepted"] is True
        remembered = answer(await session.call_tool("memory_search", {"words": "silu"}))
        assert remembered["results"][0]["kind"] == "pair"


@pytest.mark.slow
async def test_cancelling_a_tool_ends_what_it_runs(home: Path) -> None:
    endless = SILU.replace("    return out", "    while True:\n        pass\n    return out")
    assert endless != SILU
    (home / "silu.py").write_text(endless)
    async with tools(home) as session:
        waiting = asyncio.create_task(session.call_tool("profile", {"file": "silu.py"}))
        running = await _until(lambda: _busy(_server(home)))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await _until(lambda: not any(map(is_running, running)))


@pytest.mark.slow
async def test_a_cancelled_search_ends_with_what_it_has(home: Path) -> None:
    (home / "silu.py").write_text(SILU)
    going = asyncio.Event()

    async def progress(number: float, total: float | None, text: str | None) -> None:
        if "looking for" in (text or ""):
            going.set()

    def ended() -> Any:
        with Memory.open(home / "memory.db", read_only=True) as memory:
            (run,) = memory.run_log.runs()
        return run if run.status != "running" else None

    async with tools(home) as session:
        waiting = asyncio.create_task(
            session.call_tool("optimize", {"file": "silu.py"}, progress_callback=progress)
        )
        await asyncio.wait_for(going.wait(), 120)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        run = await _until(ended)
    assert (run.status, "interrupted" in run.result["reason"]) == ("cancelled", True)


async def _until(look: Callable[[], Any]) -> Any:
    """What ``look`` returns once that is something."""

    async def looked() -> Any:
        while not (answer := await asyncio.to_thread(look)):
            await asyncio.to_thread(os.sched_yield)
        return answer

    return await asyncio.wait_for(looked(), 60)


def _server(root: Path) -> int:
    """The process that serves the tools for ``root``."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"mcp" in words and str(root).encode() in words:
                return int(entry.name)
    raise AssertionError("there is no server")


def _busy(server: int) -> list[int]:
    """The processes below ``server`` that have computed for longer than any start takes, and still do."""
    least = 5 * os.sysconf("SC_CLK_TCK")
    stats = {pid: stat_fields(pid) for pid in descendants(server)}
    return [pid for pid, stat in stats.items() if stat and stat[0] == "R" and int(stat[11]) > least]
