"""Run one search for a faster version of a kernel and turn its events into what the person is shown."""

from __future__ import annotations

import textwrap
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from accelopt_agent.events import (
    CandidateJudged,
    CandidateTried,
    Event,
    Finished,
    ProgressText,
    SuggestionFound,
)
from accelopt_agent.model.editor_models import EditorModels
from accelopt_agent.model.editor_request import Complete
from accelopt_agent.model.ledger import ledger_line
from accelopt_agent.optimize import optimize
from accelopt_agent.request import OptimizeRequest
from accelopt_agent.search.control import SearchControl, SearchStoppedError
from accelopt_agent.search.history import interrupted
from accelopt_agent.search.paid import content_of
from accelopt_agent.suggestions.suggestion import Speedup
from accelopt_lsp.errors import HostUnavailableError, UserError
from accelopt_lsp.features.wording import duration, speedup
from accelopt_lsp.models import resolve_team
from accelopt_lsp.search_plan import search_budget, search_plan
from accelopt_lsp.service.host_profiles import HostProfiles
from accelopt_lsp.service.protocol import FileText, SearchEnd, SearchEvent, SearchProgress, SearchRequest
from accelopt_memory.errors import MemoryUnavailableError
from accelopt_memory.memory import Memory
from accelopt_profiling.hosts.host import HostUnreachableError
from accelopt_profiling.waiting import in_thread

#: How many characters of what is being tried an editor's line holds.
WIDTH = 70


async def search_events(
    file: FileText,
    kernel: str,
    request: SearchRequest,
    profiles: HostProfiles,
    memory: Memory | None,
    complete: Complete,
    control: SearchControl,
) -> AsyncGenerator[SearchEvent, None]:
    """Search on the host of the settings. ``complete`` asks the editor's own models.

    Raises:
        HostUnavailableError: the host cannot be reached.
        UserError: instructions are given and no model can be asked.
    """
    settings = file.settings
    known = profiles.known_problem(file, kernel)
    search = replace(_optimize_request(file, kernel, request), inferred=() if known is None else (known,))
    model, not_asked = None, ""
    try:
        if "model" in search.sources:
            team = in_thread(resolve_team, settings, Path(file.path), in_editor=True)
            model, not_asked = await control.unless_stopped(team)
        if request.instructions and model is None:
            why = not_asked or "none is configured; set `model.base_url` and `model.model`"
            raise UserError(f"Instructions are for a model, and no model is asked: {why}")
        if request.resume and not request.instructions and model is not None and memory is not None:
            wishes = in_thread(_earlier_instructions, memory, file, kernel, search.target)
            search = replace(search, instructions=await control.unless_stopped(wishes))
        formatter = SearchProgressFormatter(kernel, search.budget.candidates, not_asked)
        host, asked = await control.unless_stopped(profiles.connected(settings)), EditorModels(complete)
        async with aclosing(
            optimize(search, host, memory, model=model, asked=asked, control=control)
        ) as events:
            async for event in events:
                for shown in formatter.of(event):
                    yield shown
    except SearchStoppedError as stop:
        yield SearchEnd(0, f"{kernel}: nothing was tried: {stop}.")
    except HostUnreachableError as error:
        raise HostUnavailableError(str(error)) from None


def _optimize_request(file: FileText, kernel: str, request: SearchRequest) -> OptimizeRequest:
    settings = file.settings
    search = OptimizeRequest(
        path=Path(file.path),
        text=file.text,
        target=file.targets[next(k.dialect for k in file.found.kernels if k.name == kernel)],
        root=settings.project_root,
        problem=settings.problem,
        examined=file.examined,
        kernel=kernel,
        budget=search_budget(settings),
        instructions=request.instructions,
        resume=request.resume,
    )
    return search_plan(settings).of(search)


def _earlier_instructions(memory: Memory, file: FileText, kernel: str, target: str) -> str:
    """Return what the person asked for in the run that is continued."""
    content = next(k.content_hash for k in file.found.kernels if k.name == kernel)
    try:
        before = interrupted(memory, content, target, file.settings.host, content_of(file.examined))
    except MemoryUnavailableError:
        return ""  # the search itself will say what is wrong with the memory
    return before.instructions if before is not None else ""


class SearchProgressFormatter:
    """Of one search: ``budget`` is how many candidates it may try, ``remark`` what its last words end with."""

    def __init__(self, kernel: str, budget: int, remark: str = "") -> None:
        self._kernel, self._budget, self._remark = kernel, budget, remark
        self._tried = 0
        self._best: Speedup | None = None

    def of(self, event: Event) -> list[SearchEvent]:
        if isinstance(event, SuggestionFound):
            if self._best is None or event.suggestion.speedup.value > self._best.value:
                self._best = event.suggestion.speedup
            return [event.suggestion]
        if isinstance(event, CandidateTried):
            self._tried = max(self._tried, event.number)
            unchecked = ", unchecked" if event.outcome == "faster" else ""
            return [self._going_on(f"{event.outcome}{unchecked}: {event.candidate.last_step}")]
        if isinstance(event, CandidateJudged):
            verdict = "passed the gate" if event.verdict.accepted else "refused by the gate"
            return [self._going_on(f"{verdict}: {event.candidate.last_step}")]
        if isinstance(event, ProgressText):
            return [self._going_on(event.text)]
        if isinstance(event, Finished):
            spent = event.usage.candidates >= self._budget  # then the reason says how many
            ended = (
                ""
                if spent or not self._tried
                else f"; {self._tried} candidate{'' if self._tried == 1 else 's'} tried"
            )
            best = f"; the best is {speedup(self._best)}" if self._best is not None else ""
            said = [f"{self._kernel}: {event.reason}{ended}{best}".removesuffix(".") + "."]
            if event.unchecked:
                first, *more = event.unchecked
                others = f" and {len(more)} more" if more else ""
                version = f"{duration(first.latency)} by {first.candidate.last_step.rstrip('.')}"
                said.append(f"Faster by their time, not checked yet: {version}{others}.")
            if event.ending != "done":
                said.append("Resume the search to continue it.")
            said += [part for part in (ledger_line(event.calls), self._remark) if part]
            return [SearchEnd(self._tried, " ".join(said))]
        return []

    def _going_on(self, message: str) -> SearchProgress:
        """``7 of 40 tried, best 1.80x est.: slower: SUMMARY``: an editor shows no more than the line, or less."""
        best = f", best {speedup(self._best).partition(' (')[0]}" if self._best is not None else ""
        going_on = textwrap.shorten(message.removeprefix(f"{self._kernel}: "), WIDTH, placeholder="...")
        told = f"{self._tried} of {self._budget} tried{best}: {going_on}"
        return SearchProgress(told, self._tried, min(self._tried / self._budget, 1.0))
