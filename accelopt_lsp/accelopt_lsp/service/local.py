"""The service behind the server, in this process: what the memory knows of a file, and what is found anew."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelopt_agent.search.control import SearchControl
from accelopt_agent.search.history import interrupted, past_runs
from accelopt_agent.search.paid import content_of
from accelopt_agent.search.resumable_run import ResumableRun
from accelopt_agent.suggestions import accept as deciding
from accelopt_agent.suggestions.accept import notice_undone
from accelopt_agent.suggestions.suggestion import Suggestion, best_first
from accelopt_lsp.errors import UserError
from accelopt_lsp.models import resolve_team
from accelopt_lsp.service.memory_executor import MemoryExecutor
from accelopt_lsp.service.protocol import FileText, SearchEvent, SearchRequest, StoredSearches, Surface
from accelopt_lsp.settings.load import Settings
from accelopt_memory.memory import Memory
from accelopt_profiling.content_key import depends_on_any
from accelopt_profiling.measurement import HOST_FAULTS, FileMeasurement
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.inference.inferred import InferredProblem

if TYPE_CHECKING:
    from accelopt_agent.migration.comparison import ComparedMigration
    from accelopt_lsp.service.host_profiles import HostProfiles

log = logging.getLogger(__name__)

#: Findings that may be gone at the next run of the same text: results with one are not remembered.
_PASSING = HOST_FAULTS | {
    "timeout", "out-of-memory", "too-much-output", "kernel-crashed", "kernel-exited", "kernel-raised",
    "missing-package", "no-problem", "problem-raised",
}  # fmt: skip


class LocalService:
    """Implements ``Service`` in this process."""

    def __init__(self) -> None:
        self.surface = Surface()
        self._memory = MemoryExecutor()
        self._host_profiles: HostProfiles | None = None
        self._memory_trouble: str | None = None
        self._controls: dict[str, SearchControl] = {}

    async def start(self) -> None:
        """Do nothing: hosts connect and memories open when they are first used."""

    async def stored_searches(self, file: FileText, saved: bool = False) -> StoredSearches:
        hashes = {k.content_hash: file.targets[k.dialect] for k in file.found.kernels}

        def look(memory: Memory) -> tuple[list[dict[str, Any]], list[ResumableRun]]:
            notice_undone(memory, file.path, hashes, file.read_at, opened=not saved)
            stored = memory.suggestions(file=file.path, state="offered")
            host, content = file.settings.host, content_of(file.examined)
            runs = (interrupted(memory, k, target, host, content) for k, target in hashes.items())
            return [s.body for s in stored], [run for run in runs if run is not None]

        try:
            bodies, unfinished = await self._memory.use(file.settings, look)
        except UserError as problem:
            self._note_memory(str(problem))
            return StoredSearches()
        suggestions = filter(None, map(_stored_suggestion, bodies))
        offered = [s for s in suggestions if hashes.get(s.base_hash) == s.target]
        return StoredSearches(best_first(offered), unfinished)

    async def profile(self, file: FileText) -> AsyncGenerator[FileMeasurement, None]:
        last: FileMeasurement | None = None
        profiles = await self._profiles()
        async with aclosing(profiles.profile(file)) as growing:
            async for last in growing:
                yield last
        if last is not None and last.complete:
            await self._remember(file, last)

    async def migrate(self, file: FileText) -> ComparedMigration:
        return await (await self._profiles()).migrate(file)

    async def infer_problem(self, file: FileText, kernel: str) -> InferredProblem:
        return await (await self._profiles()).infer_problem(file, kernel)

    async def optimize(
        self, file: FileText, kernel: str, request: SearchRequest
    ) -> AsyncGenerator[SearchEvent, None]:
        # before anything is awaited: who pauses may be quick
        control = self._controls[request.job] = SearchControl(request.paused)
        try:
            await _imported("accelopt_agent.rules.catalogue")
            search = await _imported("accelopt_lsp.service.search")
            profiles, memory = await self._profiles(), await self._memory_or_none(file.settings)
            async with aclosing(
                search.search_events(file, kernel, request, profiles, memory, self.surface.complete, control)
            ) as events:
                async for event in events:
                    yield event
        finally:
            if self._controls.get(request.job) is control:
                del self._controls[request.job]

    async def pause(self, job: str, on: bool) -> None:
        if (control := self._controls.get(job)) is not None:
            control.pause() if on else control.go_on()

    async def stop(self, job: str) -> None:
        if (control := self._controls.get(job)) is not None:
            control.stop("cancelled")

    async def memory_for_kernel(self, file: FileText, kernel: str, bound: str | None) -> str:
        view = await _imported("accelopt_lsp.features.memory_page")
        return str(await self._memory.use(file.settings, lambda m: view.kernel_page(file, kernel, bound, m)))

    async def memory_with_words(self, words: str, settings: Settings) -> str:
        view = await _imported("accelopt_lsp.features.memory_page")
        return str(await self._memory.use(settings, lambda m: view.words_page(words, m)))

    async def forget(self, pair: str, settings: Settings) -> str:
        view = await _imported("accelopt_lsp.features.memory_page")
        return str(await self._memory.use(settings, lambda m: view.forget_pair(pair, m)))

    async def past_runs(self, path: str, settings: Settings) -> str:
        page = await _imported("accelopt_lsp.features.past_runs")
        runs = await self._memory.use(settings, lambda memory: past_runs(memory, path))
        text: str = page.past_runs_page(Path(path).name, runs)
        return text

    async def _profiles(self) -> HostProfiles:
        """Return the hosts. What uses them is imported when it is first needed: a file whose numbers are
        known needs none of it, and its lens should not wait for that."""
        module = await _imported("accelopt_lsp.service.host_profiles")
        if self._host_profiles is None:
            self._host_profiles = module.HostProfiles(self.surface)
        return self._host_profiles

    async def _memory_or_none(self, settings: Settings) -> Memory | None:
        try:
            return await self._memory.opened(settings)
        except UserError as problem:
            self._note_memory(str(problem))
            return None

    async def suggestion(self, suggestion_id: str, settings: Settings) -> Suggestion | None:
        stored = await self._memory.use(settings, lambda memory: memory.suggestion(suggestion_id))
        return _stored_suggestion(stored.body) if stored else None

    async def accept(self, suggestion: Suggestion, settings: Settings) -> str:
        pair = await self._memory.use(settings, lambda memory: deciding.accept(memory, suggestion))
        return f"Remembered suggestion {suggestion.id} for {suggestion.kernel} as the slow-fast pair {pair}."

    async def reject(self, suggestion: Suggestion, settings: Settings, reason: str = "") -> str:
        await self._memory.use(settings, lambda memory: deciding.reject(memory, suggestion, reason))
        why = f": {reason}" if reason else ""
        return f"Remembered that suggestion {suggestion.id} for {suggestion.kernel} is not wanted{why}."

    async def unreject(self, suggestion: Suggestion, settings: Settings) -> str:
        await self._memory.use(settings, lambda memory: deciding.unreject(memory, suggestion))
        return f"Suggestion {suggestion.id} for {suggestion.kernel} is offered again."

    async def learn(self, file: FileText, slow: str, kernel: str) -> str:
        learning = await _imported("accelopt_lsp.service.learning")
        profiles, memory = await self._profiles(), await self._memory.opened(file.settings)
        return str(await learning.learn_change(file, slow, kernel, profiles, memory))

    async def explain(
        self, suggestion: Suggestion, settings: Settings, ask_model: bool
    ) -> AsyncGenerator[str, None]:
        explaining = await _imported("accelopt_lsp.explain")
        models = await _imported("accelopt_agent.model.editor_models")
        team, why_not = None, "In a workspace that is not trusted no model is asked."
        if ask_model:
            team, why_not = await asyncio.to_thread(
                resolve_team, settings, Path(suggestion.file), in_editor=True
            )
        memory = await self._memory_or_none(settings)
        model, asked = team.summarizer if team else None, models.EditorModels(self.surface.complete)
        async with aclosing(
            explaining.explanations(suggestion, memory, model, why_not, asked=asked)
        ) as growing:
            async for found in growing:
                yield found.text

    async def depends_on(self, file: FileText, paths: frozenset[str]) -> bool:
        return await asyncio.to_thread(depends_on_any, file.examined, paths)

    async def close(self) -> None:
        if self._host_profiles is not None:
            await self._host_profiles.close()
        await self._memory.close()

    async def _remember(self, file: FileText, results: FileMeasurement) -> None:
        said = [*results.findings, *(f for k in results.kernels for f in k.findings)]
        lasting = bool(file.key and results.kernels) and not any(f.code in _PASSING for f in said)

        def keep(memory: Memory) -> None:
            for receipt in results.receipts:
                memory.add_receipt(receipt)
            if lasting:
                memory.profile_cache.put(file.key, to_plain(replace(results, receipts=[])))

        try:
            await self._memory.use(file.settings, keep)
        except UserError as problem:
            self._note_memory(str(problem))

    def _note_memory(self, problem: str) -> None:
        """The memory cannot be used: profiles go on without it, and it is said once, not at every save."""
        if problem != self._memory_trouble:
            self._memory_trouble = problem
            log.error("%s", problem)
            self.surface.memory_problem(problem)


def _stored_suggestion(body: dict[str, Any]) -> Suggestion | None:
    """Return a suggestion of the memory; None for one that another version saved, or an older gate checked."""
    try:
        suggestion = from_plain(Suggestion, body)
    except ValueError:
        return None
    return None if suggestion.gate.is_outdated else suggestion


async def _imported(module: str) -> Any:
    """Import a module on a thread: it takes too long for the event loop."""
    return await asyncio.to_thread(importlib.import_module, module)
