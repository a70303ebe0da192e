"""Writes a run to the memory as it happens. When the memory fails, that is reported once and the run goes on without
it."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from accelopt_agent.candidate import Candidate
from accelopt_agent.search.node import Node
from accelopt_agent.suggestions.lesson import keep_explanation
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_memory.errors import MemoryUnavailableError
from accelopt_memory.features import kernel_features
from accelopt_memory.forgetting import Forgotten, tidy
from accelopt_memory.memory import Memory
from accelopt_memory.outcomes import Outcome, OutcomePrior
from accelopt_memory.records import Pair, RunStatus, Trap
from accelopt_profiling.plain import to_plain
from accelopt_profiling.receipt import Receipt
from accelopt_profiling.waiting import in_thread

T = TypeVar("T")

#: The kinds of a run's events. ``BASELINE`` holds the measurement of the original, ``TRANSCRIPT_ENTRY`` the role that
#: a model answered in.
BASELINE = "baseline"
CANDIDATE_TRIED, CANDIDATE_JUDGED = "candidate tried", "candidate judged"
TRANSCRIPT_ENTRY = "said"
PAUSED, CONTINUED = "paused", "went on"

#: The option of a run that takes over what earlier ones paid for, and that with the key of the texts it began with.
RESUMES, CONTENT = "resumes", "content"
#: The option of a run that checks one version again, with its id.
REPEATS = "repeats"
#: The option of a run with the process that searches; a run that is "running" in none was interrupted.
PROCESS = "process"


class Recorder:
    """``memory`` None records nothing. ``trouble`` is why the memory was given up, None while it works."""

    def __init__(self, memory: Memory | None) -> None:
        self._memory = memory
        self.run = secrets.token_hex(6)  # its id, until the memory gives another one
        self._run: str | None = None
        self.trouble: str | None = None
        self._trouble_reported = False
        self._sketched: frozenset[str] = frozenset()

    def new_trouble(self) -> str | None:
        """Return a sentence about ``trouble`` the first time that this is called after it occurred; None otherwise."""
        if self.trouble is None or self._trouble_reported:
            return None
        self._trouble_reported = True
        return f"{self.trouble} The search goes on; nothing of it is remembered."

    async def read(self, call: Callable[[Memory], T], otherwise: T) -> T:
        """Read from the memory. ``otherwise`` where there is none or it cannot be read."""
        return otherwise if self._memory is None else await self._call(call, self._memory, otherwise)

    async def _write(self, call: Callable[[Memory], T], otherwise: T) -> T:
        """Write to the memory; do nothing after a write has failed."""
        if self._memory is None or self.trouble is not None:
            return otherwise
        return await self._call(call, self._memory, otherwise)

    async def _call(self, call: Callable[[Memory], T], memory: Memory, otherwise: T) -> T:
        try:
            return await in_thread(call, memory)  # the database may make it wait
        except MemoryUnavailableError as error:
            self.trouble = str(error)
            return otherwise

    async def start(
        self, file: str, kernel: str, kernel_hash: str, target: str, host: str, options: dict[str, Any]
    ) -> None:
        """Begin a run."""
        self._run = await self._write(
            lambda m: m.run_log.start(file, kernel, kernel_hash, target, host, options), None
        )
        self.run = self._run or self.run

    async def event(self, kind: str, data: dict[str, Any], key: str | None = None) -> None:
        run = self._run
        if run is not None:
            plain = to_plain(data)
            await self._write(lambda m: m.run_log.add_event(run, kind, plain, key), 0)

    async def finish(self, status: RunStatus, result: dict[str, Any]) -> None:
        run = self._run
        if run is not None:
            plain = to_plain(result)
            await self._write(lambda m: m.run_log.finish(run, status, plain), None)
            await self._write(tidy, Forgotten())

    async def stored(self, key: str) -> Any:
        """Return the plain value that is stored under a key. None where none is."""
        return await self.read(lambda m: m.profile_cache.get(key), None)

    async def store(self, key: str, value: Any) -> None:
        plain = to_plain(value)
        await self._write(lambda m: m.profile_cache.put(key, plain), False)

    async def receipt(self, receipt: Receipt) -> None:
        await self._write(lambda m: m.add_receipt(receipt), "")

    async def suggestion(self, suggestion: Suggestion) -> None:
        plain = to_plain(suggestion)
        await self._write(lambda m: m.save_suggestion(plain), "")

    @property
    def keeps(self) -> bool:
        """Whether there is a memory that takes what is recorded."""
        return self._memory is not None and self.trouble is None

    async def lesson(self, suggestion: Suggestion, text: str) -> None:
        """Store why a checked version is faster, in the run and with its pair."""
        data = {"suggestion": suggestion.id, "text": text}
        await self._write(lambda m: keep_explanation(m, suggestion, data, f"lesson {suggestion.id}"), None)

    async def trap_lesson(self, root: Node, rewrite: str, target: str, text: str) -> None:
        """Store why a rewrite of the kernel at ``root`` got slower, with the trap."""
        trap = Trap(root.kernel.content_hash, rewrite, target=target, origin="", code="")
        await self._write(lambda m: m.set_trap_message(trap.id, text), None)

    async def checked_pair(self, pair: Pair, instead_of: Sequence[str] = ()) -> None:
        """Store a pair that the gate has accepted and no person yet, ``instead_of`` earlier ones by id."""

        def store(memory: Memory) -> None:
            with memory.transaction():
                for earlier in instead_of:
                    memory.withdraw_unaccepted(earlier)
                memory.add_pair(replace(pair, checked=True))

        await self._write(store, None)

    async def outcome(self, outcome: Outcome) -> None:
        await self._write(lambda m: m.outcomes.add(outcome), None)

    async def refusal(self, task: str, target: str, rewrite: str) -> None:
        """Note that the gate refused a rewrite that had an outcome."""
        await self._write(lambda m: m.outcomes.refuse(task, target, rewrite), None)

    async def prior(self, dialect: str) -> OutcomePrior | None:
        """Return what earlier outcomes of the dialect let expect. None where there are none."""
        nothing: OutcomePrior | None = None
        prior = await self.read(lambda m: m.outcomes.prior(dialect), nothing)
        return prior if prior is not None and prior.outcomes else None

    async def trap(
        self, root: Node, rewrite: str, target: str, candidate: Candidate, code: str, why: str
    ) -> None:
        """Store a rewrite, by its fingerprint, that must not be tried again on the kernel at ``root`` and this target,
        and what that kernel looks like, once."""
        kernel = root.kernel
        trap = Trap(
            kernel.content_hash,
            rewrite,
            target=target,
            origin=candidate.origin,
            code=code,
            message=why,
            kernel=candidate.kernel,
            dialect=kernel.dialect,
            steps=candidate.steps,
            summary=candidate.summary,
        )
        first, self._sketched = (
            kernel.content_hash not in self._sketched,
            self._sketched | {kernel.content_hash},
        )

        def store(memory: Memory) -> str:
            if first:
                with contextlib.suppress(ValueError, RecursionError):
                    features = kernel_features(root.text, kernel.name, root.measurement.bound)
                    memory.kernels.note(kernel.content_hash, features)
            return memory.add_trap(trap)

        await self._write(store, "")
