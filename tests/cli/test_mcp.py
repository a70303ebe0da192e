"""``accelopt mcp`` as a coding agent meets it: the real client of the protocol against the real command."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.nki_kernels import SILU

from accelopt_memory.memory import Memory

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
async def test_cancelling_a_tool_ends_its_command(home: Path) -> None:
    endless = SILU.replace("    return out", "    while True:\n        pass\n    return out")
    assert endless != SILU
    (home / "silu.py").write_text(endless)
    async with tools(home) as session:
        waiting = asyncio.create_task(session.call_tool("profile", {"file": "silu.py"}))
        while not (running := _profiles(home)):
            await asyncio.to_thread(os.sched_yield)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(asyncio.to_thread(_ended, running), 60)


@pytest.mark.slow
async def test_a_cancelled_search_ends_with_what_it_has(home: Path) -> None:
    (home / "silu.py").write_text(SILU)
    going = asyncio.Event()

    async def progress(number: float, total: float | None, text: str | None) -> None:
        if "looking for" in (text or ""):
            going.set()

    async with tools(home) as session:
        waiting = asyncio.create_task(
            session.call_tool("optimize", {"file": "silu.py"}, progress_callback=progress)
        )
        await asyncio.wait_for(going.wait(), 120)
        running = _running(home, b"\0optimize\0")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(asyncio.to_thread(_ended, running), 15)
    with Memory.open(home / "memory.db", read_only=True) as memory:
        (run,) = memory.run_log.runs()
    assert (run.status, "interrupted" in run.result["reason"]) == ("cancelled", True)


def _profiles(root: Path) -> list[int]:
    return _running(root, b"\0profile\0")


def _running(root: Path, command: bytes) -> list[int]:
    """The processes that run a command on a file below ``root``."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if command in line and str(root).encode() in line:
                pids.append(int(entry.name))
    return pids


def _ended(processes: list[int]) -> None:
    while any(Path(f"/proc/{process}").exists() for process in processes):
        os.sched_yield()
