"""Define what the server needs from the packages behind it. ``local.py`` implements it, ``process.py`` runs that in a
process of its own, and tests script their own."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from accelopt_agent.search.resumable_run import ResumableRun
from accelopt_agent.suggestions.suggestion import Speedup, Suggestion
from accelopt_lsp.errors import RefusedError, UserError
from accelopt_lsp.service.surface import Surface
from accelopt_lsp.settings.load import Settings
from accelopt_profiling.ignored import IgnoredFindings
from accelopt_profiling.kernels import Kernel, KernelSource
from accelopt_profiling.measurement import Dialect, FileMeasurement

if TYPE_CHECKING:
    from accelopt_agent.events import Event, ModelCall
    from accelopt_agent.migration.comparison import ComparedMigration
    from accelopt_agent.request import Budget, Repetition
    from accelopt_agent.search.history import PastRun
    from accelopt_memory.records import SearchHit
    from accelopt_profiling.gate.verdict import Verdict
    from accelopt_profiling.problems.inference.inferred import InferredProblem
    from accelopt_profiling.receipt import Receipt


@dataclass(frozen=True)
class FileRequest:
    """What is asked about: a file, read once for all requests about it, and the settings that hold for it.

    ``key`` is the hash of all that results for it come from, empty where they are not to be stored, and ``stored`` is
    the complete profile that was found under it. ``again`` asks for a new profile even so. ``read_at`` is when the
    text was taken from the editor, in seconds since the epoch. ``label`` is the file as a person named it, if one did.
    """

    source: KernelSource
    settings: Settings
    key: str = ""
    stored: FileMeasurement | None = None
    again: bool = False
    read_at: float = field(default_factory=time.time)
    label: str = ""

    @property
    def path(self) -> str:
        return str(self.source.path)

    @property
    def name(self) -> str:
        """The file's name in messages."""
        return self.label or self.path

    @property
    def text(self) -> str:
        return self.source.text

    def without_ignored(self, measurement: FileMeasurement) -> FileMeasurement:
        """Return its measurement with the findings that the file's comments and its settings do not silence."""
        return IgnoredFindings.of(self.text).rest_of(measurement, self.settings.ignored)

    def require_sound(self) -> None:
        """Raise UserError where something is wrong with the text or its problem."""
        errors = [f"{self.name}:{f.line}: {f.message}" for f in self.source.findings if f.severity == "error"]
        if errors:
            raise UserError("\n".join(errors))

    def kernels(self, name: str | None) -> list[Kernel]:
        """Return the launched kernels, or the one of that name.

        Raises:
            RefusedError: there is none. UserError: none has that name.
        """
        kernels = self.source.launched
        if not kernels:
            raise RefusedError(f"{self.name} has no kernel that is launched.")
        chosen = [k for k in kernels if name in (None, k.name)]
        if not chosen:
            names = ", ".join(k.name for k in kernels)
            raise UserError(f"{self.name} has no kernel {name!r}; it has {names}.")
        return chosen

    @property
    def targets(self) -> dict[Dialect, str]:
        """The target per dialect."""
        return self.settings.targets(self.source.kernels)


@dataclass(frozen=True)
class StoredSearches:
    """What the memory knows of the searches for a text: suggestions still open, best first, the last one of each kernel
    that was accepted, and searches that were interrupted."""

    suggestions: list[Suggestion] = field(default_factory=list)
    accepted: list[Suggestion] = field(default_factory=list)
    interrupted: list[ResumableRun] = field(default_factory=list)


@dataclass(frozen=True)
class SearchRequest:
    """How a person wants a search. ``instructions`` are for the model, which must then be one that may be asked;
    ``resume`` takes over what earlier searches paid for; ``job`` is the name by which it is paused, which it is from
    the beginning with ``paused``. ``ask_model`` False: none is asked, whatever the settings say. ``budget`` is that of
    the settings where None. With a ``repetition`` that one version is made and checked, and nothing else."""

    instructions: str = ""
    resume: bool = False
    job: str = ""
    paused: bool = False
    ask_model: bool = True
    budget: Budget | None = None
    repetition: Repetition | None = None


@dataclass(frozen=True)
class Explanation:
    """A Markdown page as it stands. ``model`` wrote the words at its head, "" where nobody did; ``calls`` are what was
    paid for them, now or earlier. ``pending_model`` is the one that is being asked meanwhile."""

    text: str
    model: str = ""
    pending_model: str = ""
    calls: tuple[ModelCall, ...] = ()


@dataclass(frozen=True)
class CheckedCandidate:
    """The gate's verdict on a candidate, over all dialects of its file: what the checks covered, as sentences, and the
    evidence."""

    verdict: Verdict
    covered: list[str]
    receipts: list[Receipt]


@dataclass(frozen=True)
class Difference:
    """What came out differently: the name of a quantity, and what the receipt and the replay say."""

    name: str
    then: Any
    now: Any


@dataclass(frozen=True)
class Replayed:
    """What came of running a receipt again."""

    receipt: str
    kind: str
    agrees: bool
    differences: list[Difference] = field(default_factory=list)


@dataclass(frozen=True)
class LearnedPair:
    """A slow-fast pair that was remembered by its id, and how much faster ``kernel`` is."""

    pair: str
    kernel: str
    speedup: Speedup


class Service(Protocol):
    """Profiles, searches and remembers. Nothing here may block the event loop."""

    surface: Surface

    async def start(self) -> None:
        """Get ready ahead of the first call."""

    async def stored_searches(self, file: FileRequest, saved: bool = False) -> StoredSearches:
        """Return what is known without running anything.

        A text that was ``saved`` can undo what was accepted; one that is opened only where git has not moved to
        another commit since then.
        """

    def profile(
        self, file: FileRequest, kernels: Sequence[str] = (), timeline: bool = False
    ) -> AsyncGenerator[FileMeasurement, None]:
        """Profile a file; yields growing results, the last one ``complete``. Closing it ends what it started.

        ``kernels`` are the names of those to profile, all where none is given; ``timeline`` asks for the schedule of
        each engine.

        Raises:
            HostUnavailableError, UserError
        """

    async def migrate(self, file: FileRequest, target: str = "") -> ComparedMigration:
        """Return a file of NKI's Beta 1 in today's NKI, and what running both on ``target`` came to.

        Raises:
            HostUnavailableError
            UserError: it is no such file, there is no problem to run it on, or it cannot be run.
        """
        ...

    async def infer_problem(self, file: FileRequest, kernel: str | None) -> InferredProblem:
        """Return inputs with which a kernel, or all of the first one's dialect, run, or the best that were found; of
        an untrusted folder's from its syntax alone.

        Raises:
            HostUnavailableError, UserError
        """

    def optimize(
        self, file: FileRequest, kernel: str | None, request: SearchRequest
    ) -> AsyncGenerator[Event, None]:
        """Search for faster versions of a kernel, or of each that is launched; the last event is ``Finished``. Closing
        it ends what it started.

        Raises:
            HostUnavailableError, UserError: the file cannot be searched, or nobody may propose.
        """

    async def pause(self, job: str, on: bool) -> None:
        """Let the search of that job rest, or go on. One that is not there (any more) is none."""

    async def stop(self, job: str, why: str = "cancelled") -> None:
        """Let the search of that job end with what it has, for the reason ``why``. One that is not there (any more) is
        none."""

    async def memory_for_kernel(self, file: FileRequest, kernel: str, bound: str | None) -> str:
        """Return the page about the remembered changes that a search would try on a kernel. Raises UserError."""

    async def memory_with_words(self, words: str, settings: Settings) -> str:
        """Return the page about the remembered changes that hold these words. Raises UserError."""

    async def memory_list(self, folders: Sequence[str], settings: Settings) -> list[dict[str, Any]]:
        """Return the accepted pairs of files below ``folders``, newest first: ``{"id", "kernel", "file", "summary",
        "gain", "created", "tries", "uses": [{"id", "kernel", "file", "state"}, ...]}``. Raises UserError."""

    async def pair_texts(self, pair: str, settings: Settings) -> dict[str, str]:
        """Return the files before (``slow``) and after (``fast``) a pair's change. Raises UserError: there is none."""

    async def forget(self, pair: str, settings: Settings) -> str:
        """Delete a pair by its id, or the beginning of it, for good; returns in words what was deleted. Raises
        UserError: there is none, or several."""

    async def past_runs(self, path: str, settings: Settings) -> str:
        """Return a Markdown page with the newest runs of a file and their steps. Raises UserError."""

    async def last_runs(self, path: str, settings: Settings) -> list[PastRun]:
        """Return the newest run of each kernel of a file that tried something, with its steps. Raises UserError."""

    async def suggestion(self, suggestion_id: str, settings: Settings) -> Suggestion | None:
        """Return the suggestion of that id, from the memory.

        Raises:
            RefusedError: an older version checked it. UserError: it cannot be read.
        """

    async def accept(self, suggestion_id: str, settings: Settings) -> str:
        """Remember that a suggestion was applied; return the id of its slow-fast pair. Raises UserError."""
        ...

    async def reject(self, suggestion_id: str, settings: Settings, reason: str = "") -> str:
        """Remember that a suggestion was not wanted; return the rejection's id. Again with a ``reason``, that replaces
        the one before. Raises UserError."""
        ...

    async def offer_again(self, suggestion_id: str, settings: Settings) -> None:
        """Forget what was decided about a suggestion, its pair among it, and offer it again. Raises UserError."""

    async def learn(
        self, file: FileRequest, slow: str, kernel: str | None = None, summary: str = ""
    ) -> LearnedPair:
        """Remember a person's own change from the text ``slow`` to that of ``file``, once the gate has accepted it.

        ``kernel`` is the one that changed, where several did.

        Raises:
            HostUnavailableError
            RefusedError: it is not accepted, or not faster.
            UserError: there is nothing to run it on, or nothing is kept.
        """
        ...

    async def verify(self, file: FileRequest, candidate: str) -> CheckedCandidate:
        """Return whether the text ``candidate`` may stand in the place of ``file``, whose settings name the problem.

        ``file`` has that text itself where there is no original.

        Raises:
            HostUnavailableError, UserError: the problem cannot be used.
        """
        ...

    async def replay(self, receipt_id: str, settings: Settings) -> Replayed:
        """Run the check or profile of a receipt again, and compare.

        Raises:
            HostUnavailableError, UserError: there is no such receipt, or it cannot be run again.
        """
        ...

    def explain(
        self, suggestion_id: str, settings: Settings, ask_model: bool
    ) -> AsyncGenerator[Explanation, None]:
        """Explain why a suggestion is faster, at once and then with a model's words where one may be asked. Closing it
        ends the question."""

    async def search_memory(self, words: str, limit: int, settings: Settings) -> list[SearchHit]:
        """Return at most ``limit`` entries of the memory that hold every word. Raises UserError."""
        ...

    async def depends_on(self, file: FileRequest, paths: frozenset[str]) -> bool:
        """Return whether results for ``file`` come from any of these files too (its problem, or a module it
        imports)."""

    async def close(self) -> None:
        """End everything that runs."""
