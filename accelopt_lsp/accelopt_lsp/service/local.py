"""The service behind the server, in this process: what the memory knows of a file, and what is found anew."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from accelopt_lsp.errors import MemoryUnusableError, RefusedError, UserError
from accelopt_lsp.models import resolve_team
from accelopt_lsp.resources import open_memory, refresh, require_memory
from accelopt_lsp.service.protocol import (
    CheckedCandidate,
    Explanation,
    FileRequest,
    LearnedPair,
    Replayed,
    SearchRequest,
    StoredSearches,
)
from accelopt_lsp.service.surface import Surface
from accelopt_lsp.settings.load import Settings
from accelopt_memory.errors import MemoryUnavailableError
from accelopt_memory.memory import Memory
from accelopt_profiling.content_key import depends_on_any
from accelopt_profiling.measurement import HOST_FAULTS, FileMeasurement
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.inference.inferred import InferredProblem

if TYPE_CHECKING:
    from accelopt_agent.events import Event
    from accelopt_agent.migration.comparison import ComparedMigration
    from accelopt_agent.search.control import SearchControl
    from accelopt_agent.search.history import PastRun
    from accelopt_agent.search.resumable_run import ResumableRun
    from accelopt_agent.suggestions.suggestion import Suggestion
    from accelopt_lsp.service.host_profiles import HostProfiles
    from accelopt_memory.records import SearchHit


log = logging.getLogger(__name__)

T = TypeVar("T")


class MemoryExecutor:
    """One thread and the memories it has open, by path."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memory")
        self._open: dict[Path, Memory] = {}

    async def use(self, settings: Settings, call: Callable[[Memory], T]) -> T:
        """``call(memory)`` on the memory's thread, with the memory that the settings name.

        Raises:
            MemoryUnusableError: the database cannot be used; it says why and what to do.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._call, settings, call)

    async def opened(self, settings: Settings) -> Memory:
        """Return the memory itself, for a search, which calls it from threads too. Raises MemoryUnusableError."""
        return await self.use(settings, lambda memory: memory)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    def _call(self, settings: Settings, call: Callable[[Memory], T]) -> T:
        path = settings.memory_path
        try:
            if path in self._open:
                refresh(self._open[path])
            else:
                self._open[path] = open_memory(settings)
            return call(self._open[path])
        except MemoryUnavailableError as error:
            if (broken := self._open.pop(path, None)) is not None:
                broken.close()
            raise MemoryUnusableError(str(error)) from None

    def _close(self) -> None:
        for memory in self._open.values():
            memory.close()
        self._open.clear()


#: Findings that may be gone at the next run of the same text: results with one are not remembered.
_PASSING = HOST_FAULTS | {
    "timeout", "out-of-memory", "too-much-output", "kernel-crashed", "kernel-exited", "kernel-raised",
    "missing-package", "no-problem", "problem-raised",
}  # fmt: skip


class LocalService:
    """Implements ``Service`` in this process; ``in_editor``, the editor's own models may be asked."""

    def __init__(self, surface: Surface | None = None, in_editor: bool = False) -> None:
        self.surface = surface or Surface()
        self._in_editor = in_editor
        self._memory = MemoryExecutor()
        self._host_profiles: HostProfiles | None = None
        self._memory_trouble: str | None = None
        self._controls: dict[str, SearchControl] = {}

    async def start(self) -> None:
        """Do nothing: hosts connect and memories open when they are first used."""

    async def stored_searches(self, file: FileRequest, saved: bool = False) -> StoredSearches:
        from accelopt_agent.search.history import interrupted
        from accelopt_agent.search.paid import content_of
        from accelopt_agent.suggestions.accept import notice_undone
        from accelopt_agent.suggestions.suggestion import best_first

        hashes = {k.content_hash: file.targets[k.dialect] for k in file.source.kernels}

        def look(memory: Memory) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[ResumableRun]]:
            notice_undone(memory, file.path, hashes, file.read_at, opened=not saved)
            stored = memory.suggestions(file=file.path, state="offered")
            host, content = file.settings.host, content_of(file.source)
            runs = (
                interrupted(memory, k, target=target, host=host, content=content)
                for k, target in hashes.items()
            )
            accepted = {
                s.body.get("kernel"): s.body for s in memory.suggestions(file=file.path, state="accepted")
            }
            return [s.body for s in stored], [*accepted.values()], [run for run in runs if run is not None]

        try:
            bodies, accepted, unfinished = await self._memory.use(file.settings, look)
        except UserError as problem:
            self._note_memory(str(problem))
            return StoredSearches()
        suggestions = filter(None, map(_offer, bodies))
        offered = [s for s in suggestions if hashes.get(s.base_hash) == s.target]
        return StoredSearches(best_first(offered), list(filter(None, map(_offer, accepted))), unfinished)

    async def profile(
        self, file: FileRequest, kernels: Sequence[str] = (), timeline: bool = False
    ) -> AsyncGenerator[FileMeasurement, None]:
        last: FileMeasurement | None = None
        profiles = await self._profiles()
        async with aclosing(profiles.profile(file, kernels, timeline)) as growing:
            async for last in growing:
                yield replace(last, receipts=[])  # the memory's, which has all files in them
        if last is not None and last.complete:
            await self._remember(file, last)

    async def migrate(self, file: FileRequest, target: str = "") -> ComparedMigration:
        return await (await self._profiles()).migrate(file, target)

    async def infer_problem(self, file: FileRequest, kernel: str | None) -> InferredProblem:
        return await (await self._profiles()).infer_problem(file, kernel)

    async def optimize(
        self, file: FileRequest, kernel: str | None, request: SearchRequest
    ) -> AsyncGenerator[Event, None]:
        from accelopt_agent.search.control import SearchControl

        # before anything is awaited: who pauses may be quick
        control = self._controls[request.job] = SearchControl(request.paused)
        try:
            await _imported("accelopt_agent.rules.catalogue")
            search = await _imported("accelopt_lsp.service.search")
            events: AsyncGenerator[Event, None] = search.search_events(
                file, kernel, request, await self._profiles(), await self._memory_or_none(file.settings),
                self.surface.complete, control, in_editor=self._in_editor,
            )  # fmt: skip
            async with aclosing(events):
                async for event in events:
                    yield event
        finally:
            if self._controls.get(request.job) is control:
                del self._controls[request.job]

    async def pause(self, job: str, on: bool) -> None:
        if (control := self._controls.get(job)) is not None:
            control.pause() if on else control.go_on()

    async def stop(self, job: str, why: str = "cancelled") -> None:
        if (control := self._controls.get(job)) is not None:
            control.stop(why)

    async def memory_for_kernel(self, file: FileRequest, kernel: str, bound: str | None) -> str:
        view = await _imported("accelopt_lsp.features.memory_page")
        return str(await self._memory.use(file.settings, lambda m: view.kernel_page(file, kernel, bound, m)))

    async def memory_with_words(self, words: str, settings: Settings) -> str:
        view = await _imported("accelopt_lsp.features.memory_page")
        return str(await self._memory.use(settings, lambda m: view.words_page(words, m)))

    async def memory_list(self, folders: Sequence[str], settings: Settings) -> list[dict[str, Any]]:
        view = await _imported("accelopt_lsp.features.memory_list")
        rows: list[dict[str, Any]] = await self._memory.use(settings, lambda m: view.memory_list(folders, m))
        return rows

    async def pair_texts(self, pair: str, settings: Settings) -> dict[str, str]:
        view = await _imported("accelopt_lsp.features.memory_list")
        texts: dict[str, str] = await self._memory.use(settings, lambda m: view.pair_texts(pair, m))
        return texts

    async def forget(self, pair: str, settings: Settings) -> str:
        view = await _imported("accelopt_lsp.features.memory_page")
        return str(await self._memory.use(settings, lambda m: view.forget_pair(pair, m)))

    async def last_runs(self, path: str, settings: Settings) -> list[PastRun]:
        from accelopt_agent.search.history import last_runs

        return await self._memory.use(settings, lambda memory: last_runs(memory, path))

    async def past_runs(self, path: str, settings: Settings) -> str:
        from accelopt_agent.search.history import past_runs

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
        return await self._memory.use(settings, lambda memory: _suggestion(memory, suggestion_id))

    async def accept(self, suggestion_id: str, settings: Settings) -> str:
        from accelopt_agent.suggestions.accept import accept

        try:
            return await self._memory.use(
                settings, lambda memory: accept(memory, _required(memory, suggestion_id))
            )
        except ValueError as error:
            raise UserError(f"{error}.") from None

    async def reject(self, suggestion_id: str, settings: Settings, reason: str = "") -> str:
        from accelopt_agent.suggestions.accept import reject

        return await self._memory.use(
            settings, lambda memory: reject(memory, _required(memory, suggestion_id), reason)
        )

    async def offer_again(self, suggestion_id: str, settings: Settings) -> None:
        from accelopt_agent.suggestions.accept import offer_again

        await self._memory.use(settings, lambda memory: offer_again(memory, _required(memory, suggestion_id)))

    async def learn(
        self, file: FileRequest, slow: str, kernel: str | None = None, summary: str = ""
    ) -> LearnedPair:
        require_memory(file.settings)
        learning = await _imported("accelopt_lsp.service.search")
        profiles, memory = await self._profiles(), await self._memory.opened(file.settings)
        learned: LearnedPair = await learning.learn_change(file, slow, kernel, summary, profiles, memory)
        return learned

    async def explain(
        self, suggestion_id: str, settings: Settings, ask_model: bool
    ) -> AsyncGenerator[Explanation, None]:
        memory = await self._memory.opened(settings)
        suggestion = await self._memory.use(settings, lambda m: _required(m, suggestion_id))
        explaining = await _imported("accelopt_lsp.explain")
        models = await _imported("accelopt_agent.model.editor_models")
        team, why_not = None, "No model was asked."
        if settings.untrusted is not None:
            why_not = "In a workspace that is not trusted no model is asked."
        if ask_model:
            file = Path(suggestion.file)
            team, why_not = await asyncio.to_thread(resolve_team, settings, file, in_editor=self._in_editor)
        model, query = team.summarizer if team else None, models.EditorModels(self.surface.complete)
        async with aclosing(
            explaining.explanations(suggestion, memory, model, why_not, query=query)
        ) as growing:
            async for explanation in growing:
                yield explanation

    async def verify(self, file: FileRequest, candidate: str) -> CheckedCandidate:
        from accelopt_lsp.gate_check import without_kernel

        if candidate == file.text and (refusal := without_kernel(candidate)) is not None:
            return CheckedCandidate(refusal, [], [])
        checked: CheckedCandidate = await (await self._profiles()).verify(file, candidate)
        if checked.verdict.invalid_problem:
            raise UserError("\n".join(reason.message for reason in checked.verdict.reasons))
        await self._keep(file.settings, lambda m: [m.add_receipt(r) for r in checked.receipts])
        return checked

    async def replay(self, receipt_id: str, settings: Settings) -> Replayed:
        receipt = await self._memory.use(settings, lambda memory: memory.receipt(receipt_id))
        if receipt is None:
            raise RefusedError(f"The memory has no receipt {receipt_id!r}.")
        replaying = await _imported("accelopt_lsp.service.replaying")
        replayed: Replayed = await replaying.replay(receipt, settings, await self._profiles())
        return replayed

    async def search_memory(self, words: str, limit: int, settings: Settings) -> list[SearchHit]:
        return await self._memory.use(settings, lambda memory: memory.search(words, limit))

    async def depends_on(self, file: FileRequest, paths: frozenset[str]) -> bool:
        return await asyncio.to_thread(depends_on_any, file.source, paths)

    async def close(self) -> None:
        if self._host_profiles is not None:
            await self._host_profiles.close()
        await self._memory.close()

    async def _remember(self, file: FileRequest, results: FileMeasurement) -> None:
        findings = [*results.findings, *(f for k in results.kernels for f in k.findings)]
        lasting = bool(file.key and results.kernels) and not any(f.code in _PASSING for f in findings)
        if not lasting and not results.receipts:
            return

        def keep(memory: Memory) -> None:
            for receipt in results.receipts:
                memory.add_receipt(receipt)
            if lasting:
                kernels = [replace(kernel, timeline=None) for kernel in results.kernels]
                memory.profile_cache.put(file.key, to_plain(replace(results, kernels=kernels, receipts=[])))

        await self._keep(file.settings, keep)

    async def _keep(self, settings: Settings, keep: Callable[[Memory], object]) -> None:
        try:
            await self._memory.use(settings, keep)
        except UserError as problem:
            self._note_memory(str(problem))

    def _note_memory(self, problem: str) -> None:
        """The memory cannot be used: profiles go on without it, and it is said once, not at every save."""
        if problem != self._memory_trouble:
            self._memory_trouble = problem
            log.error("%s", problem)
            self.surface.memory_problem(problem)


def _suggestion(memory: Memory, suggestion_id: str) -> Suggestion | None:
    """Return a suggestion of the memory, as ``Service.suggestion`` does."""
    from accelopt_agent.suggestions.suggestion import Suggestion

    if (stored := memory.suggestion(suggestion_id)) is None:
        return None
    try:
        suggestion = from_plain(Suggestion, stored.body)
    except ValueError as error:
        raise UserError(f"The suggestion {suggestion_id} was saved by another version: {error}.") from None
    if suggestion.gate.is_outdated:
        raise RefusedError(
            f"An older version checked {suggestion.id}, and not whether {suggestion.target} can launch it. "
            f"`accelopt optimize {suggestion.file}` looks again."
        )
    return suggestion


def _required(memory: Memory, suggestion_id: str) -> Suggestion:
    """Return a suggestion of the memory. Raises UserError."""
    if (suggestion := _suggestion(memory, suggestion_id)) is None:
        raise RefusedError(f"The memory has no suggestion {suggestion_id}.")
    return suggestion


def _offer(body: dict[str, Any]) -> Suggestion | None:
    """Return a suggestion of the memory; None for one that another version saved, or an older gate checked."""
    from accelopt_agent.suggestions.suggestion import Suggestion

    try:
        suggestion = from_plain(Suggestion, body)
    except ValueError:
        return None
    return None if suggestion.gate.is_outdated else suggestion


async def _imported(module: str) -> Any:
    """Import a module on a thread: it takes too long for the event loop."""
    return await asyncio.to_thread(importlib.import_module, module)
