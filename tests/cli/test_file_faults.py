"""Every file access of ``profile``, ``verify``, ``accept``, ``watch`` and an editor's save fails once, in each way: a
sentence, and nothing is lost.

A first run lists the places in the product's code that read or write files; each is then made to fail where it is first
reached. The host's answers are those of the first run.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import errno
import io
import json
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.command import Command, Ended
from support.shared_host import SharedWorkers
from support.toy_search import FUSED, TEXT, WIDE, ToyProposer, play, request

import accelopt_agent
import accelopt_lsp
import accelopt_memory
import accelopt_profiling
from accelopt_agent.events import SuggestionFound
from accelopt_lsp import resources
from accelopt_lsp.errors import UserError, file_fault
from accelopt_lsp.resources import read_source
from accelopt_lsp.service.local import LocalService
from accelopt_lsp.service.protocol import FileRequest
from accelopt_lsp.settings.load import load_settings
from accelopt_memory.memory import Memory
from accelopt_profiling.examination import examine
from accelopt_profiling.hosts import local
from accelopt_profiling.hosts.host import HostFacts, JobMessage
from accelopt_profiling.jobs import Job
from accelopt_profiling.measurement import FileMeasurement

#: Kernels that Python does not read.
UNREADABLE = {
    "nested": "x = " + "-" * 20_000 + "1\n", "nested names": "x = y" + ".a" * 20_000, "null bytes": "x = 'a\0b'\n",
    "half a surrogate pair": "x = '\ud800'\n",
}  # fmt: skip

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "nki_silu.py"
_ROOMS = tuple(
    str(Path(str(room.__file__)).parent)
    for room in (accelopt_agent, accelopt_lsp, accelopt_memory, accelopt_profiling)
)
_ACCESSES = [
    (builtins, "open"), (io, "open"), (os, "open"), (os, "stat"), (os, "lstat"), (os, "scandir"), (os, "listdir"),
    (os, "mkdir"), (os, "replace"), (os, "rename"), (os, "unlink"), (os, "remove"), (os, "readlink"), (os, "fsync"),
    (os, "link"), (os, "chmod"), (os, "access"),
]  # fmt: skip
ERRORS: dict[str, Callable[[Any], Exception]] = {
    "no permission": lambda path: PermissionError(errno.EACCES, "Permission denied", path),
    "no room": lambda path: OSError(errno.ENOSPC, "No space left on device", path),
    "too deep": lambda path: RecursionError("maximum recursion depth exceeded"),
    "no memory": lambda path: MemoryError(),
    "no text": lambda path: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
}

#: A place in the product's code (file and line) and the access that it makes.
Site = tuple[str, int, str]


class PlayedHost:
    """Answers as the local host did to the first job of the same steps."""

    name, remote, require_isolation = "local", False, False
    answers: dict[tuple[str, ...], list[JobMessage]] = {}
    known: HostFacts | None = None

    def __init__(self, workers: SharedWorkers) -> None:
        self.on_incomplete: Callable[[str], None] = print
        self._workers = workers

    async def facts(self) -> HostFacts:
        if PlayedHost.known is None:
            PlayedHost.known = await self._workers.host().facts()
        return PlayedHost.known

    async def run(self, job: Job) -> AsyncGenerator[JobMessage, None]:
        steps = tuple(step.name for step in job.steps)
        if steps not in self.answers:
            async with contextlib.aclosing(self._workers.host().run(job)) as messages:
                self.answers[steps] = [message async for message in messages]
        for message in self.answers[steps]:
            yield message

    async def close(self) -> None:
        """Leave the worker to the next test."""


class Accesses:
    """Watches file accesses: notes the ``sites`` of each, and raises at the first of ``fails``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sites: dict[Site, None] = {}
        self.fails: tuple[Site, Callable[[Any], Exception]] | None = None
        for module, name in _ACCESSES:
            monkeypatch.setattr(module, name, self._watched(name, getattr(module, name)))

    def _watched(self, name: str, access: Any) -> Any:
        def watched(*arguments: Any, **keywords: Any) -> Any:
            site = _site(name)
            if site is not None:
                self.sites[site] = None
                if self.fails is not None and self.fails[0] == site:
                    make, self.fails = self.fails[1], None
                    raise make(arguments[0] if arguments else None)
            return access(*arguments, **keywords)

        return watched


def _site(name: str) -> Site | None:
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib") or file == __file__ or file.endswith("importlib/__init__.py"):
            return None  # Python's own imports, and the played host
        if file.startswith(_ROOMS):
            return file, frame.f_lineno, name
        frame = frame.f_back  # type: ignore[assignment]
    return None


@pytest.fixture
def kept(home: Path) -> Path:
    """A project with a kernel, a candidate and a memory without anything in it."""
    shutil.copy(EXAMPLE, home / "k.py")
    shutil.copy(EXAMPLE, home / "candidate.py")
    (home / "accelopt.toml").write_text('target = "trn1"\n')
    return home


COMMANDS = {
    "profile": ["profile", "k.py", "--json"],
    "verify": ["verify", "candidate.py", "--problem", "k.py", "--original", "k.py", "--json"],
    "accept": ["accept", "@ID@", "--json"],
    "watch": ["watch", ".", "--once", "--json"],
    "save": [],
}


@pytest.mark.parametrize(
    "error",
    [pytest.param(e, marks=[] if e in ("no permission", "no text") else pytest.mark.long) for e in ERRORS],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_failed_access_is_a_sentence_and_loses_nothing(
    accelopt: Command,
    kept: Path,
    workers: SharedWorkers,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    error: str,
) -> None:
    arguments = list(COMMANDS[command])
    if command == "accept":
        arguments[1] = asyncio.run(_waiting_suggestion(kept))
    monkeypatch.setattr(local, "LocalHost", lambda *_, **__: PlayedHost(workers))
    PlayedHost.answers.clear()
    stored = {path.name: path.read_bytes() for path in kept.iterdir() if path.is_file()}
    accesses = Accesses(monkeypatch)
    run = partial(_saved, kept / "k.py") if command == "save" else partial(accelopt, *arguments)
    assert run().code == 0
    sites = list(accesses.sites)
    assert len(sites) > 5
    after = (kept / "k.py").read_text()
    wrong = []
    for site in sites:
        for name, content in stored.items():
            (kept / name).write_bytes(content)
        resources._said.clear()
        accesses.fails = site, ERRORS[error]
        try:
            ended = run()
            fault = _fault(ended)
        except Exception as escaped:
            fault = f"{type(escaped).__name__}: {escaped}"
        accesses.fails = None
        if (kept / "k.py").read_text() not in (stored["k.py"].decode(), after):
            fault += " half a file"
        if command == "accept" and (kept / "k.py").read_text() == after:
            with Memory.open(kept / "memory.db") as memory:
                if fault == "" and ended.code == 0 and not memory.stats().pairs:
                    fault += " no pair"
        if fault:
            wrong.append(f"{os.path.relpath(site[0], Path.cwd())}:{site[1]} {site[2]}: {fault}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("command", ["profile", "verify"])
def test_a_text_that_cannot_be_read_is_a_sentence(
    accelopt: Command, kept: Path, command: str, text: str
) -> None:
    arguments = COMMANDS[command]
    (kept / arguments[1]).write_text(EXAMPLE.read_text() + text, encoding="utf-8", errors="surrogatepass")
    ended = accelopt(*arguments)
    assert ended.code in (1, 2)
    assert not _fault(ended)
    assert "pars" in ended.out or "UTF-8" in ended.out


async def _waiting_suggestion(folder: Path) -> str:
    """Put a suggestion for the kernel file into the memory; return its id."""
    (folder / "k.py").write_text(TEXT)
    search_request = replace(request(), file=examine(folder / "k.py", TEXT))
    with Memory.open(folder / "memory.db") as memory:
        events = await play([ToyProposer({**WIDE, **FUSED})], memory, search_request=search_request)
    return next(event.suggestion.id for event in events if isinstance(event, SuggestionFound))


def _saved(path: Path) -> Ended:
    """What an editor's save does behind the server, and what the person is told where it fails."""

    async def save() -> list[FileMeasurement]:
        text = read_source(path)
        file, service = FileRequest(examine(path, text), load_settings(path), key="key"), LocalService()
        try:
            await service.stored_searches(file, saved=True)
            async with contextlib.aclosing(service.profile(file)) as measurements:
                return [measurement async for measurement in measurements]
        finally:
            await service.close()

    try:
        assert asyncio.run(save())
    except Exception as error:
        sentence = str(error) if isinstance(error, UserError) else file_fault(error, path.name)
        if not sentence:
            raise
        return Ended(3, json.dumps({"schema": 1, "error": {"message": sentence}}), "")
    return Ended(0, json.dumps({"schema": 1}), "")


def _fault(ended: Any) -> str:
    """Return what is wrong with how a command ended, "" where nothing is."""
    if ended.code not in (0, 1, 2, 3):
        return f"exit {ended.code}"
    output = ended.out + ended.err
    if "internal" in output or "Traceback" in output:
        return output
    answer = ended.object
    message = answer.get("error", {}).get("message", "") if isinstance(answer, dict) else ""
    if ended.code in (2, 3) and "error" in answer and not message.endswith("."):
        return f"no sentence: {message!r}"
    return ""
