"""The memory's records as plain data. Ids are hashes of content, so that saving a record twice keeps one row."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal

from accelopt_memory.features import KernelFeatures
from accelopt_profiling.measurement import Dialect, Latency
from accelopt_profiling.quantity import CounterMove

RunStatus = Literal["running", "finished", "cancelled", "failed"]
SuggestionState = Literal["offered", "accepted", "rejected"]
RecordKind = Literal["pair", "trap", "rejection", "run", "suggestion", "receipt"]


def content_id(*parts: str) -> str:
    """Return 16 hex digits of the SHA-256 over the parts, each preceded by its length so that no two lists collide."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()[:16]


def pair_id(dialect: str, target: str, kernel: str, slow_text: str, fast_text: str) -> str:
    """Return the id of the pair of these texts."""
    return content_id("pair", dialect, target, kernel, slow_text, fast_text)


@dataclass(frozen=True)
class Pair:
    """A slow-fast pair: one kernel before and after a rewrite that was checked, and that a person accepted
    unless it is ``checked`` only.

    ``slow_text`` and ``fast_text`` are the whole files; ``slow_hash`` and ``fast_hash`` the kernel's content hashes in
    them (``kernels.Kernel.content_hash``). ``steps`` are the origins of the rewrites, oldest first ("rule:NAME",
    "model:NAME", ...): what is tried again on a kernel that looks like the slow side. ``receipts`` are the ids of the
    evidence. ``created`` is UTC in ISO format, set when the pair is added. ``edit`` is the id of what the change says,
    the same for pairs that teach the same ("": not known). An ``example`` is a pair whose own edit does not make its
    fast side of its slow side: it is shown, not applied. ``bound`` is what limits the slow side, ``fast_bound`` the
    fast one; ``moved`` are the counters that changed most, and ``lesson`` is what the summarizer said about it ("": it
    was not asked).
    """

    kernel: str
    dialect: Dialect
    target: str
    slow_text: str
    fast_text: str
    slow_hash: str
    fast_hash: str
    origin: str
    summary: str
    features: KernelFeatures
    slow: Latency = field(default_factory=Latency)
    fast: Latency = field(default_factory=Latency)
    steps: tuple[str, ...] = ()
    host: str = "local"
    file: str = ""
    bound: str | None = None
    receipts: tuple[str, ...] = ()
    created: str = ""
    imported: bool = False
    edit: str = ""
    example: bool = False
    fast_bound: str | None = None
    moved: tuple[CounterMove, ...] = ()
    lesson: str = ""
    checked: bool = False

    @property
    def id(self) -> str:
        return pair_id(
            self.dialect, self.target, kernel=self.kernel, slow_text=self.slow_text, fast_text=self.fast_text
        )

    @property
    def speedup(self) -> float | None:
        """Slow time over fast time; None when either is unknown."""
        if self.slow.us is None or not self.fast.us:
            return None
        return self.slow.us / self.fast.us


@dataclass(frozen=True)
class Match:
    """A pair whose slow side looks like the kernel asked about.

    ``score`` is 0..1, 1 for the same structure.
    """

    pair: Pair
    score: float


@dataclass(frozen=True)
class Trap:
    """A rewrite that failed or got slower, kept so that it is not tried again.

    ``kernel_hash`` is that of the kernel it started from, ``candidate_id`` that of the rewrite
    (``candidate.Candidate.id``). ``code`` is the gate's reason code, or "slower"; ``summary`` says what was changed.
    """

    kernel_hash: str
    candidate_id: str
    target: str
    origin: str
    code: str
    message: str = ""
    kernel: str = ""
    dialect: str = ""
    steps: tuple[str, ...] = ()
    created: str = ""
    imported: bool = False
    summary: str = ""

    @property
    def id(self) -> str:
        return content_id("trap", self.kernel_hash, self.candidate_id, self.target)


@dataclass(frozen=True)
class LikeFailure:
    """A rewrite that failed or got slower on a kernel that looks like the one asked about; ``score`` as in
    ``Match``, estimated."""

    trap: Trap
    score: float


@dataclass(frozen=True)
class Rejection:
    """A suggestion that a person did not want. The same rewrite of the same kernel is not offered again."""

    kernel_hash: str
    candidate_id: str
    origin: str
    reason: str = ""
    kernel: str = ""
    suggestion: str = ""
    created: str = ""
    imported: bool = False

    @property
    def id(self) -> str:
        return content_id("rejection", self.kernel_hash, self.candidate_id)


@dataclass(frozen=True)
class Run:
    """One search.

    ``options`` are its settings, ``result`` what it ended with; times are UTC in ISO format.
    """

    id: str
    file: str
    kernel: str
    kernel_hash: str
    target: str
    host: str = "local"
    options: dict[str, Any] = field(default_factory=dict)
    status: RunStatus = "running"
    started: str = ""
    finished: str = ""
    result: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunEvent:
    """One event of a run, numbered from 1 within it.

    ``key`` identifies a result that was paid for; a run has each key once.
    """

    run: str
    number: int
    kind: str
    data: dict[str, Any]
    key: str | None = None
    created: str = ""


@dataclass(frozen=True)
class StoredSuggestion:
    """A suggestion as the search saved it: ``body`` is its plain data, ``state`` the person's decision, if any."""

    id: str
    body: dict[str, Any]
    state: SuggestionState = "offered"
    created: str = ""


@dataclass(frozen=True)
class Stats:
    """The number of records of each kind.

    ``pairs`` are those that a person accepted, ``checked`` those that nobody did. ``bytes`` counts the file and its
    write-ahead log, 0 when there is none.
    """

    path: str
    pairs: int
    traps: int
    rejected: int
    runs: int
    receipts: int
    bytes: int
    checked: int = 0


@dataclass(frozen=True)
class SearchHit:
    """One result of a text search."""

    kind: RecordKind
    id: str
    kernel: str
    summary: str
    created: str
