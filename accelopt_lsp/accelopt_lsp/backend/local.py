"""Profile, search and remember in this process: the backend behind the server."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelopt_agent.model.editor_models import Complete, EditorModels, no_models
from accelopt_agent.request import Budget, OptimizeRequest
from accelopt_agent.search.history import interrupted, past_runs
from accelopt_agent.search.pause import PauseSwitch
from accelopt_agent.search.resumable_run import ResumableRun
from accelopt_agent.suggestions import accept as deciding
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_lsp.backend.cache_key import content_key, depends_on_any, profile_request
from accelopt_lsp.backend.memory_executor import MemoryExecutor
from accelopt_lsp.backend.protocol import FileText, SearchEvent, SearchRequest, StoredResults
from accelopt_lsp.backend.search_progress import SearchProgressFormatter
from accelopt_lsp.errors import HostUnavailableError, UserError
from accelopt_lsp.models import resolve_team
from accelopt_lsp.resources import host_named
from accelopt_lsp.settings.load import Settings
from accelopt_memory.memory import Memory
from accelopt_profiling.hosts.host import Host, HostFacts, HostUnreachableError
from accelopt_profiling.measurement import FileMeasurement
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problem_inference import infer_problem
from accelopt_profiling.problems.inference.inferred import InferredProblem, inference_key
from accelopt_profiling.profiler import profile as run_profile

log = logging.getLogger(__name__)

#: Findings that may be gone at the next run of the same text: results with one are not remembered.
_PASSING = frozenset(
    {
        "timeout", "out-of-memory", "too-much-output", "kernel-crashed", "kernel-exited", "kernel-raised",
        "missing-package", "no-problem", "host-unreachable", "problem-raised",
    }
)  # fmt: skip


#: So many content keys are kept, the newest ones.
KEYS_KEPT = 16


class LocalBackend:
    """Implements ``Backend`` in this process."""

    def __init__(self) -> None:
        self.host_problem: Callable[[str | None], None] = lambda reason: None
        self.memory_problem: Callable[[str], None] = lambda reason: None
        self.complete: Complete = no_models
        self._memory = MemoryExecutor()
        self._connecting: set[asyncio.Future[HostFacts]] = set()
        self._hosts: dict[tuple[str, str], Host] = {}
        self._input_specs: dict[str, list[dict[str, Any]]] = {}
        self._inferred: dict[str, InferredProblem] = {}
        self._memory_trouble: str | None = None
        self._pauses: dict[str, PauseSwitch] = {}
        self._keys: OrderedDict[int, asyncio.Task[str]] = OrderedDict()

    async def start(self) -> None:
        """Nothing to do: hosts connect and memories open when they are first used."""

    async def remembered(self, file: FileText) -> StoredResults:
        key = await self._content_key(file)
        hashes = {k.content_hash: file.settings.target_for(k.dialect) for k in file.found.kernels}

        def look(memory: Memory) -> tuple[Any, list[dict[str, Any]], list[ResumableRun]]:
            stored = memory.suggestions(file=file.path, state="offered")
            runs = (interrupted(memory, k, target, file.settings.host) for k, target in hashes.items())
            return (
                memory.profile_cache.get(key),
                [s.body for s in stored],
                [run for run in runs if run is not None],
            )

        try:
            cached, bodies, unfinished = await self._memory.use(file.settings, look)
        except UserError as problem:
            self._note_memory(str(problem))
            return StoredResults()
        suggestions = [from_plain(Suggestion, body) for body in bodies]
        offered = [s for s in suggestions if hashes.get(s.base_hash) == s.target]
        return StoredResults(_results(cached), sorted(offered, key=lambda s: -s.speedup.value), unfinished)

    async def _content_key(self, file: FileText) -> str:
        """``content_key``, computed once for all requests about one examination."""
        if not file.examination:
            return await asyncio.to_thread(content_key, file)
        if file.examination not in self._keys:
            self._keys[file.examination] = asyncio.create_task(asyncio.to_thread(content_key, file))
            while len(self._keys) > KEYS_KEPT:
                self._keys.popitem(last=False)
        return await asyncio.shield(self._keys[file.examination])

    async def profile(self, file: FileText) -> AsyncGenerator[FileMeasurement, None]:
        key = await self._content_key(file)
        if not file.again and (cached := await self._cached(file, key)) is not None:
            yield cached
            return
        last: FileMeasurement | None = None
        async with aclosing(self._run(file)) as growing:
            async for last in growing:
                yield last
        if last is not None and last.complete:
            await self._remember(file, key, last)

    async def infer_problem(self, file: FileText, kernel: str) -> InferredProblem:
        chosen = file.examined.kernel(kernel) or file.examined.kernels[0]
        known = self._inferred.get(inference_key(file.examined))
        if known is not None and chosen.name in known.launched:
            return known
        host, target = self._host(file.settings), file.settings.target_for(chosen.dialect)
        try:
            await self._connected(host)
            return await infer_problem(host, file.examined, [chosen], target, file.settings.job_limits)
        except HostUnreachableError as error:
            raise HostUnavailableError(str(error)) from None

    async def optimize(
        self, file: FileText, kernel: str, request: SearchRequest
    ) -> AsyncGenerator[SearchEvent, None]:
        pause = self._pauses[request.job] = PauseSwitch(
            request.paused
        )  # before anything is awaited: who pauses may be quick
        try:
            async with aclosing(self._optimize(file, kernel, request, pause)) as events:
                async for event in events:
                    yield event
        finally:
            if self._pauses.get(request.job) is pause:
                del self._pauses[request.job]

    async def pause(self, job: str, on: bool) -> None:
        if (pause := self._pauses.get(job)) is not None:
            pause.pause() if on else pause.go_on()

    async def past_runs(self, path: str, settings: Settings) -> str:
        page = await asyncio.to_thread(importlib.import_module, "accelopt_lsp.features.past_runs")
        runs = await self._memory.use(settings, lambda memory: past_runs(memory, path))
        text: str = page.past_runs_page(Path(path).name, runs)
        return text

    async def _optimize(
        self, file: FileText, kernel: str, request: SearchRequest, pause: PauseSwitch
    ) -> AsyncGenerator[SearchEvent, None]:
        await self._search_loaded()
        from accelopt_agent.optimize import optimize

        settings = file.settings
        dialect = next(k.dialect for k in file.found.kernels if k.name == kernel)
        goal = settings.search.percent_of_peak
        budget = Budget(
            candidates=settings.search.candidates,
            seconds=settings.search.minutes * 60,
            percent_of_peak=goal if goal < 100 else None,
        )
        search = OptimizeRequest(
            path=Path(file.path),
            text=file.text,
            target=settings.target_for(dialect),
            root=settings.project_root,
            problem=settings.problem,
            examined=file.examined,
            kernel=kernel,
            budget=budget,
            strategy=settings.search.strategy,
            instructions=request.instructions,
            resume=request.resume,
        )
        model, not_asked = await asyncio.to_thread(resolve_team, settings, Path(file.path), in_editor=True)
        if request.instructions and model is None:
            why = not_asked or "none is configured; set `model.base_url` and `model.model`"
            raise UserError(f"Instructions are for a model, and no model is asked: {why}")
        memory = await self._memory_or_none(settings)
        if request.resume and not request.instructions and model is not None:
            search = replace(search, instructions=await self._wished(file, kernel, search.target))
        asked = EditorModels(self.complete)
        formatter = SearchProgressFormatter(kernel, budget.candidates, not_asked)
        try:
            host = self._host(settings)
            await self._connected(host)
            async with aclosing(
                optimize(search, host, memory, model=model, asked=asked, pause=pause)
            ) as events:
                async for event in events:
                    for shown in formatter.of(event):
                        yield shown
        except HostUnreachableError as error:
            raise HostUnavailableError(str(error)) from None

    async def _wished(self, file: FileText, kernel: str, target: str) -> str:
        """What the person asked for in the run that is gone on with."""
        content = next(k.content_hash for k in file.found.kernels if k.name == kernel)
        host = file.settings.host
        try:
            before = await self._memory.use(file.settings, lambda m: interrupted(m, content, target, host))
        except UserError:
            return ""  # the search itself will say what is wrong with the memory
        return before.instructions if before is not None else ""

    async def _memory_or_none(self, settings: Settings) -> Memory | None:
        try:
            return await self._memory.opened(settings)
        except UserError as problem:
            self._note_memory(str(problem))
            return None

    async def _search_loaded(self) -> None:
        """Import the search and its rules on a thread: it takes too long for the event loop."""
        for module in ("accelopt_agent.optimize", "accelopt_agent.rules.catalogue"):
            await asyncio.to_thread(importlib.import_module, module)

    async def suggestion(self, suggestion_id: str, settings: Settings) -> Suggestion | None:
        stored = await self._memory.use(settings, lambda memory: memory.suggestion(suggestion_id))
        return from_plain(Suggestion, stored.body) if stored else None

    async def accept(self, suggestion: Suggestion, settings: Settings) -> str:
        pair = await self._memory.use(settings, lambda memory: deciding.accept(memory, suggestion))
        return f"Remembered suggestion {suggestion.id} for {suggestion.kernel} as the slow-fast pair {pair}."

    async def reject(self, suggestion: Suggestion, settings: Settings) -> str:
        await self._memory.use(settings, lambda memory: deciding.reject(memory, suggestion))
        return f"Remembered that suggestion {suggestion.id} for {suggestion.kernel} is not wanted."

    async def explain(
        self, suggestion: Suggestion, settings: Settings, ask_model: bool
    ) -> AsyncGenerator[str, None]:
        explaining = await asyncio.to_thread(importlib.import_module, "accelopt_lsp.explain")
        team, why_not = None, "In a workspace that is not trusted no model is asked."
        if ask_model:
            team, why_not = await asyncio.to_thread(
                resolve_team, settings, Path(suggestion.file), in_editor=True
            )
        memory = await self._memory_or_none(settings)
        model, asked = team.summarizer if team else None, EditorModels(self.complete)
        async with aclosing(
            explaining.explanations(suggestion, memory, model, why_not, asked=asked)
        ) as growing:
            async for found in growing:
                yield found.text

    async def depends_on(self, file: FileText, paths: frozenset[str]) -> bool:
        return await asyncio.to_thread(depends_on_any, file, paths)

    async def close(self) -> None:
        if self._connecting:
            await asyncio.wait(self._connecting, timeout=5)
        hosts = [host.close() for host in self._hosts.values()]
        await asyncio.gather(*hosts, return_exceptions=True)
        await self._memory.close()

    async def _run(self, file: FileText) -> AsyncGenerator[FileMeasurement, None]:
        """Profile on the host of the settings; while that cannot be reached, without hardware on this machine."""
        host = self._host(file.settings)
        request = replace(
            await asyncio.to_thread(profile_request, file),
            input_specs=self._input_specs,
            inferred=self._inferred,
        )
        try:
            await self._connected(host)
            if host.remote:
                self.host_problem(None)
            async with aclosing(run_profile(host, request)) as growing:
                async for results in growing:
                    yield results
            return
        except HostUnreachableError as error:
            if not host.remote:
                raise HostUnavailableError(str(error)) from None
            self.host_problem(str(error))
        local = self._host(file.settings, "local")
        try:
            await self._connected(local)
            async with aclosing(run_profile(local, request)) as growing:
                async for results in growing:
                    yield results
        except HostUnreachableError as error:
            raise HostUnavailableError(str(error)) from None

    def _host(self, settings: Settings, name: str | None = None) -> Host:
        name = name or settings.host
        local = f"{settings.interpreter} {sorted(settings.env.items())}"
        described = local if name == "local" else repr(settings.hosts[name])
        if (name, described) not in self._hosts:
            self._hosts[name, described] = host_named(settings, name)
        return self._hosts[name, described]

    async def _connected(self, host: Host) -> None:
        """Connect to a host. A caller that is cancelled leaves the connecting to go on: a process whose start is
        cut short in the middle is hard to get rid of, and the next profile needs it anyway.

        Raises:
            HostUnreachableError
        """
        connecting = asyncio.ensure_future(host.facts())
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connection_made)
        await asyncio.shield(connecting)

    def _connection_made(self, connecting: asyncio.Future[HostFacts]) -> None:
        self._connecting.discard(connecting)
        if not connecting.cancelled():
            connecting.exception()  # told to whoever still waits

    async def _cached(self, file: FileText, key: str) -> FileMeasurement | None:
        try:
            return _results(
                await self._memory.use(file.settings, lambda memory: memory.profile_cache.get(key))
            )
        except UserError as problem:
            self._note_memory(str(problem))
            return None

    async def _remember(self, file: FileText, key: str, results: FileMeasurement) -> None:
        said = [*results.findings, *(f for k in results.kernels for f in k.findings)]
        lasting = bool(results.kernels) and not any(f.code in _PASSING for f in said)

        def keep(memory: Memory) -> None:
            for receipt in results.receipts:
                memory.add_receipt(receipt)
            if lasting:
                memory.profile_cache.put(key, to_plain(replace(results, receipts=[])))

        try:
            await self._memory.use(file.settings, keep)
        except UserError as problem:
            self._note_memory(str(problem))

    def _note_memory(self, problem: str) -> None:
        """The memory cannot be used: profiles go on without it, and it is said once, not at every save."""
        if problem != self._memory_trouble:
            self._memory_trouble = problem
            log.error("%s", problem)
            self.memory_problem(problem)


def _results(cached: Any) -> FileMeasurement | None:
    """Results out of the cache; None where they are not there or were written in another shape."""
    if cached is None:
        return None
    try:
        return replace(from_plain(FileMeasurement, cached), complete=True)
    except ValueError:
        return None
