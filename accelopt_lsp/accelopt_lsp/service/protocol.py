"""Define what the server needs from the packages behind it. ``local.py`` implements it, ``process.py`` runs that in a
process of its own, and tests script their own."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from accelopt_agent.model.editor_request import EditorModelReply, EditorModelRequest, no_models
from accelopt_agent.search.resumable_run import ResumableRun
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_lsp.settings.load import Settings
from accelopt_profiling.kernel_file import KernelFile
from accelopt_profiling.kernels import Discovery
from accelopt_profiling.measurement import Dialect, FileMeasurement

if TYPE_CHECKING:
    from accelopt_agent.migration.comparison import ComparedMigration
    from accelopt_profiling.problems.inference.inferred import InferredProblem


@dataclass(frozen=True)
class FileText:
    """A file as the editor has it, examined once for all requests about it, and the settings that hold for it.

    ``key`` is the hash of all that results for it come from, empty where they are not to be stored, and ``stored`` is
    the complete profile that was found under it. ``again`` asks for a new profile even so. ``read_at`` is when the
    text was taken from the editor, in seconds since the epoch.
    """

    examined: KernelFile
    settings: Settings
    key: str = ""
    stored: FileMeasurement | None = None
    again: bool = False
    read_at: float = field(default_factory=time.time)

    @property
    def path(self) -> str:
        return str(self.examined.path)

    @property
    def text(self) -> str:
        return self.examined.text

    @property
    def found(self) -> Discovery:
        return self.examined.discovery

    @property
    def targets(self) -> dict[Dialect, str]:
        """The target per dialect."""
        return self.settings.targets(self.found.kernels)


@dataclass(frozen=True)
class StoredSearches:
    """What the memory knows of the searches for a text: suggestions still open, best first, and searches that were
    interrupted."""

    suggestions: list[Suggestion] = field(default_factory=list)
    interrupted: list[ResumableRun] = field(default_factory=list)


@dataclass(frozen=True)
class SearchProgress:
    """A search went on: what is being tried, how many candidates were, and the share (0..1) of the budget spent."""

    message: str
    tried: int = 0
    share: float | None = None


@dataclass(frozen=True)
class SearchEnd:
    """A search is over: how many candidates were tried, and in words how it went."""

    tried: int
    message: str


@dataclass(frozen=True)
class SearchRequest:
    """How a person wants a search. ``instructions`` are for the model, which must then be one that may be asked;
    ``resume`` goes on with the last run, if that was interrupted; ``job`` is the name by which it is paused, which it
    is from the beginning with ``paused``."""

    instructions: str = ""
    resume: bool = False
    job: str = ""
    paused: bool = False


SearchEvent = SearchProgress | Suggestion | SearchEnd


class Surface:
    """What a service tells and asks whoever it works for; here nobody listens."""

    def host_problem(self, reason: str | None) -> None:
        """Hear that a configured host cannot be reached and another one is used, or (None) that it can."""

    def memory_problem(self, reason: str) -> None:
        """Hear why the memory cannot be used; once per reason."""

    def isolation_problem(self, line: str) -> None:
        """Hear about a host that does not isolate kernels completely; once per host."""

    async def complete(self, question: EditorModelRequest) -> EditorModelReply:
        """Have one of the editor's models asked."""
        return await no_models(question)


class Service(Protocol):
    """Profiles, searches and remembers. Nothing here may block the event loop."""

    surface: Surface

    async def start(self) -> None:
        """Get ready ahead of the first call."""

    async def stored_searches(self, file: FileText, saved: bool = False) -> StoredSearches:
        """Return what is known without running anything.

        A text that was ``saved`` can undo what was accepted; one that is opened only where git has not moved to
        another commit since then.
        """

    def profile(self, file: FileText) -> AsyncGenerator[FileMeasurement, None]:
        """Profile a file; yields growing results, the last one ``complete``. Closing it ends what it started.

        Raises:
            HostUnavailableError, UserError
        """

    async def migrate(self, file: FileText) -> ComparedMigration:
        """Return a file of NKI's Beta 1 in today's NKI, and what running both came to."""
        ...

    async def infer_problem(self, file: FileText, kernel: str) -> InferredProblem:
        """Return inputs with which a kernel runs, or the best that were found; of an untrusted folder's from its
        syntax alone.

        Raises:
            HostUnavailableError, UserError
        """

    def optimize(
        self, file: FileText, kernel: str, request: SearchRequest
    ) -> AsyncGenerator[SearchEvent, None]:
        """Search for faster versions of one kernel. Closing it ends what it started.

        Raises:
            HostUnavailableError, UserError
        """

    async def pause(self, job: str, on: bool) -> None:
        """Let the search of that job rest, or go on. One that is not there (any more) is none."""

    async def stop(self, job: str) -> None:
        """Let the search of that job end with what it has. One that is not there (any more) is none."""

    async def memory_for_kernel(self, file: FileText, kernel: str, bound: str | None) -> str:
        """Return the page about the remembered changes that a search would try on a kernel. Raises UserError."""

    async def memory_with_words(self, words: str, settings: Settings) -> str:
        """Return the page about the remembered changes that hold these words. Raises UserError."""

    async def forget(self, pair: str, settings: Settings) -> str:
        """Delete a pair by its id, or the beginning of it, for good; returns in words what was deleted. Raises
        UserError: there is none, or several."""

    async def past_runs(self, path: str, settings: Settings) -> str:
        """Return a Markdown page with the newest runs of a file and their steps. Raises UserError."""

    async def suggestion(self, suggestion_id: str, settings: Settings) -> Suggestion | None:
        """Return the suggestion of that id, from the memory. Raises UserError."""

    async def accept(self, suggestion: Suggestion, settings: Settings) -> str:
        """Remember that a suggestion was applied; returns in words what was saved. Raises UserError."""

    async def reject(self, suggestion: Suggestion, settings: Settings, reason: str = "") -> str:
        """Remember that a suggestion was not wanted; returns in words what was saved. Again with a ``reason``, that
        replaces the one before. Raises UserError."""

    async def unreject(self, suggestion: Suggestion, settings: Settings) -> str:
        """Offer a rejected suggestion again; returns that in words. Raises UserError."""

    async def learn(self, file: FileText, slow: str, kernel: str) -> str:
        """Remember a person's own change of ``kernel`` from the text ``slow`` to that of ``file``, once the gate has
        accepted it; returns in words what was saved.

        Raises:
            HostUnavailableError, UserError: it is not accepted, not faster, or cannot be saved.
        """

    def explain(
        self, suggestion: Suggestion, settings: Settings, ask_model: bool
    ) -> AsyncGenerator[str, None]:
        """Return a Markdown page about why a suggestion is faster, then the same with a model's words where
        one may be asked. Closing it ends the question."""

    async def depends_on(self, file: FileText, paths: frozenset[str]) -> bool:
        """Return whether results for ``file`` come from any of these files too (its problem, or a module it
        imports)."""

    async def close(self) -> None:
        """End everything that runs."""
