"""Search for faster versions of a file's kernels, and learn a person's own change of one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from accelopt_agent.evaluation.evaluators import CostUnavailableError, EvaluatorLostError
from accelopt_agent.evaluation.host_evaluation import HostCost, HostGate
from accelopt_agent.events import Event, Finished, LayoutSkipped, ModelSkipped, Usage
from accelopt_agent.learn import (
    NotLearnedError,
    accept_learned,
    changed_kernel,
    learned_suggestion,
)
from accelopt_agent.model.editor_models import EditorModels
from accelopt_agent.model.editor_request import Complete
from accelopt_agent.optimize import optimize
from accelopt_agent.request import OptimizeRequest
from accelopt_agent.search.control import SearchControl, SearchStoppedError
from accelopt_agent.search.history import interrupted
from accelopt_agent.search.paid import content_of
from accelopt_lsp.errors import HostUnavailableError, RefusedError, UserError
from accelopt_lsp.models import resolve_team
from accelopt_lsp.search_plan import require_proposer, search_budget, search_plan
from accelopt_lsp.service.host_profiles import HostProfiles
from accelopt_lsp.service.project_format import project_format
from accelopt_lsp.service.protocol import FileRequest, LearnedPair, SearchRequest
from accelopt_memory.errors import MemoryUnavailableError
from accelopt_memory.memory import Memory
from accelopt_profiling.examination import rewritten
from accelopt_profiling.hosts.host import HostUnreachableError
from accelopt_profiling.problems.inference.inferred import lacks_problem
from accelopt_profiling.waiting import in_thread


async def search_events(
    file: FileRequest,
    kernel: str | None,
    request: SearchRequest,
    profiles: HostProfiles,
    memory: Memory | None,
    complete: Complete,
    control: SearchControl,
    *,
    in_editor: bool,
) -> AsyncGenerator[Event, None]:
    """Search on the host of the settings. ``complete`` asks the editor's own models, ``in_editor``.

    Raises:
        HostUnavailableError: the host cannot be reached.
        UserError: the file cannot be searched, or instructions are given and no model can be asked.
    """
    settings = file.settings
    search = optimize_request(file, kernel, request)
    problem = profiles.known_problem(file, kernel) if kernel is not None else None
    search = replace(search, inferred=() if problem is None else (problem,))
    team, why_not = None, ""
    try:
        if "model" in search.plan.sources:
            resolving = in_thread(resolve_team, settings, Path(file.path), in_editor=in_editor)
            team, why_not = await control.unless_stopped(resolving)
            if why_not:
                yield ModelSkipped(why_not)
        if request.instructions and team is None:
            usual = "none is configured; set model.base_url and model.model"
            left_out = "--no-model was given, or the sources have none"
            why = why_not or (usual if "model" in search.plan.sources else left_out)
            raise UserError(f"Instructions are for a model, and no model is asked: {why}.".replace("..", "."))
        require_proposer(search.plan.sources, team)
        if request.resume and not request.instructions and team is not None and memory is not None:
            wishes = in_thread(_earlier_instructions, memory, file, search)
            search = replace(search, instructions=await control.unless_stopped(wishes))
        host, query = await control.unless_stopped(profiles.connected(settings)), EditorModels(complete)
        lay_out = await control.unless_stopped(project_format(Path(file.path), file.text, settings))
    except SearchStoppedError as stop:
        yield Finished("", f"nothing was tried: {stop}", Usage(), ending="stopped")
        return
    except HostUnreachableError as error:
        raise HostUnavailableError(str(error)) from None
    if lay_out.remark:
        yield LayoutSkipped(lay_out.remark)
    searching = optimize(search, host, memory, model=team, query=query, control=control, lay_out=lay_out)
    async with aclosing(searching) as events:
        async for event in events:
            yield event


def optimize_request(file: FileRequest, kernel: str | None, request: SearchRequest) -> OptimizeRequest:
    """Return the request for a search of a file under its settings.

    Raises:
        RefusedError: it has no kernel that is launched.
        UserError: it has no such kernel, or no problem that can be used.
    """
    file.require_sound()
    searched, examined, settings = file.kernels(kernel), file.source, file.settings
    if examined.problem.ref is None and not lacks_problem(examined, searched):
        why = "; ".join(f.message for f in examined.problem.findings) or "no problem was found for it."
        raise UserError(f"{file.name}: {why}")
    plan = search_plan(settings)
    if request.repetition is not None:
        plan = replace(plan, sources=frozenset({"rules"}))
    elif not request.ask_model:
        plan = replace(plan, sources=plan.sources - {"model"})
    return OptimizeRequest(
        examined,
        file.targets[searched[0].dialect],
        kernel,
        budget=request.budget or search_budget(settings),
        instructions=request.instructions.strip(),
        resume=request.resume,
        plan=plan,
        limits=settings.job_limits,
        repetition=request.repetition,
    )


def _earlier_instructions(memory: Memory, file: FileRequest, search: OptimizeRequest) -> str:
    """Return what the person asked for in the run that is continued."""
    content = file.kernels(search.kernel)[0].content_hash
    try:
        before = interrupted(
            memory, content, target=search.target, host=file.settings.host, content=content_of(file.source)
        )
    except MemoryUnavailableError:
        return ""  # the search itself will say what is wrong with the memory
    return before.instructions if before is not None else ""


async def learn_change(
    file: FileRequest, slow: str, kernel: str | None, summary: str, profiles: HostProfiles, memory: Memory
) -> LearnedPair:
    """``Service.learn``."""
    try:
        name = changed_kernel(slow, file.text, kernel)
        before = rewritten(file.source, slow)
        request = optimize_request(replace(file, source=before), name, SearchRequest())
        host = await profiles.connected(file.settings)
        learned = await learned_suggestion(
            request,
            file.text,
            cost=HostCost(host, request),
            gate=HostGate(host, request),
            memory=memory,
            host=host.name,
            summary=summary or f"A change to {name} by a person.",
        )
    except (NotLearnedError, CostUnavailableError) as error:
        raise RefusedError(str(error), error.code) from None
    except (HostUnreachableError, EvaluatorLostError) as error:
        raise HostUnavailableError(str(error)) from None
    pair = await asyncio.to_thread(accept_learned, memory, learned)
    return LearnedPair(pair, name, learned.speedup)
