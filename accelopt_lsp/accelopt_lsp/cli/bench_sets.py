"""Implements ``accelopt bench kernelbench`` and ``accelopt bench flashinfer``: runs the tasks of other projects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from accelopt_lsp.cli.failures import CommandError, Exit, wrong_input
from accelopt_lsp.cli.metrics_table import print_against_set, print_fast_p, print_metrics
from accelopt_lsp.cli.model_source import BenchmarkSearch, benchmark_options
from accelopt_lsp.cli.options import (
    target_option,
)
from accelopt_lsp.cli.terminal import print_json
from accelopt_lsp.features.wording import duration
from accelopt_lsp.resources import open_host, with_target
from accelopt_lsp.search_plan import require_proposer
from accelopt_lsp.stderr import say

if TYPE_CHECKING:
    from accelopt_agent.model.team import ModelTeam
    from accelopt_agent.request import Budget
    from accelopt_lsp.settings.load import Settings
    from nkibench.kernel_sets.tasks import SetTask
    from nkibench.metrics import SetResult
    from nkibench.searching import SearchVariant

F = TypeVar("F", bound=Callable[..., Any])

NOTE = "Speedups are over the kernel that the search began with; fast_p is over PyTorch itself."


_tasks_option: Callable[[F], F] = click.option(
    "--tasks", metavar="TEXT", default="", help="Only tasks whose name holds this."
)


@click.command(name="flashinfer")
@click.option(
    "--data", type=click.Path(path_type=Path, exists=True, file_okay=False), required=True, metavar="DIR",
    help="A data set of FlashInfer-Bench, with definitions, workloads and solutions.",
)  # fmt: skip
@click.option(
    "--workloads", type=click.IntRange(1), default=3, show_default=True,
    help="Check on so many workloads of a definition; the first one's time counts.",
)  # fmt: skip
@_tasks_option
@target_option
@benchmark_options("flashinfer-results", "60")
def flashinfer(data: Path, workloads: int, **options: Any) -> int:
    """Run FlashInfer-Bench: success, fast_1 and speedups per kind.

    Checks, profiles and optimizes the Triton solutions of a data set.

    The set's own solutions are what a found version is compared with. Solutions and traces are written in the set's
    format below the results' folder, with how each time is known.

    Exit code 1: a kernel is wrong or could not be run. 2: the data set cannot be used.
    """
    from nkibench.kernel_sets import tasks as kernel_sets

    return _run_tasks(lambda: list(kernel_sets.flashinfer(data, workloads)), data_set=data, **options)


@click.command(name="kernelbench")
@click.option(
    "--data", type=click.Path(path_type=Path, exists=True, file_okay=False), required=True, metavar="DIR",
    help="A checkout of KernelBench, with its levels.",
)  # fmt: skip
@click.option(
    "--kernels", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR",
    help="The kernels (ModelNew): level1/19_ReLU.py, or a folder of one of KernelBench's runs. Without it a model "
    "writes the first kernel of each task from the PyTorch problem alone, which --optimize and a model must allow.",
)  # fmt: skip
@_tasks_option
@target_option
@benchmark_options("kernelbench-results", "60")
def kernelbench(data: Path, kernels: Path | None, **options: Any) -> int:
    """Run KernelBench: success, speedups and fast_p per level.

    Checks, profiles and optimizes kernels for its tasks.

    fast_p is the share of the tasks whose kernel is right and more than p times as fast as PyTorch, eager and compiled:
    timed on the host's device, and estimated by the same model as the kernels without one.

    Exit code 1: a kernel is wrong, absent or could not be run. 2: the checkout cannot be used.
    """
    from nkibench.kernel_sets import tasks as kernel_sets

    return _run_tasks(lambda: list(kernel_sets.kernelbench(data, kernels)), **options)


def _run_tasks(
    read: Callable[[], list[SetTask]], tasks: str, folder: Path, target: str | None, as_json: bool,
    data_set: Path | None = None, **choices: Any,
) -> int:  # fmt: skip
    """Run the set and print its metrics.

    ``choices`` say how to search. Exit code 1: a kernel is wrong, absent or could not be run.
    """
    from nkibench.kernel_sets.flashinfer_output import against_set, write_flashinfer
    from nkibench.metrics import fast_p, metrics

    search = BenchmarkSearch.of("set", "60", **choices)
    try:
        chosen = [task for task in read() if tasks in task.name]
    except ValueError as error:
        raise wrong_input(str(error)) from None
    if not chosen:
        raise wrong_input(f"The set has no task whose name holds {tasks!r}.")
    settings = with_target(search.settings, target, ["triton"])
    run = _KernelSetRun(settings, chosen, folder=folder, budget=search.limits, target=settings.target.triton)
    try:
        results = _searched(run, search) if search.limits is not None else asyncio.run(run.results())
        search.speaker.keep()
        if data_set is not None:
            write_flashinfer(folder, chosen, results, run.target)
    except OSError as error:
        raise CommandError(
            Exit.UNAVAILABLE, f"{error.filename} cannot be written: {error.strerror}."
        ) from None
    rows, shares = metrics(results), fast_p(results)
    compared = against_set(data_set, chosen, results) if data_set is not None else []
    if as_json:
        listed = [replace(result, text="") for result in results]
        print_json(
            {"note": NOTE, "metrics": rows, "fast_p": shares, "against_set": compared, "results": listed}
        )
    else:
        print_metrics(rows)
        print_fast_p(shares)
        print_against_set(compared)
        say(NOTE)
    return Exit.DONE if all(result.status == "passed" for result in results) else Exit.NO


def _searched(run: _KernelSetRun, search: BenchmarkSearch) -> list[SetResult]:
    results: list[SetResult] = []
    for variant in search.variants:
        with search.speaker.team() as team:
            require_proposer(variant.plan.sources, team)
            results += asyncio.run(run.results(team, variant))
    return results


@dataclass(frozen=True)
class _KernelSetRun:
    settings: Settings
    tasks: Sequence[SetTask]
    folder: Path
    budget: Budget | None
    target: str

    async def results(
        self, team: ModelTeam | None = None, variant: SearchVariant | None = None
    ) -> list[SetResult]:
        """Return one run over the tasks, with a memory of its own."""
        from accelopt_agent.evaluation.evaluators import EvaluatorLostError
        from accelopt_memory.memory import Memory
        from nkibench.kernel_sets.run import SetPlan, run_set
        from nkibench.searching import SearchVariant

        variant = variant or SearchVariant()
        results: list[SetResult] = []
        host = open_host(self.settings)
        memory: Memory | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self.budget is not None:
                memory = Memory.open(self.folder / f"memory{variant.suffix}.db")
            plan = SetPlan(
                self.target,
                self.folder.resolve(),
                limits=self.settings.job_limits,
                budget=self.budget,
                memory=memory,
                team=team,
                variant=variant,
            )
            async with aclosing(run_set(host, self.tasks, plan)) as told:
                async for result in told:
                    results.append(result)
                    say(_line(result))
        except EvaluatorLostError as error:
            raise CommandError(Exit.UNAVAILABLE, str(error)) from None
        finally:
            await host.close()
            if memory is not None:
                memory.close()
        return results


def _line(result: SetResult) -> str:
    time = "" if result.latency.us is None else f", {duration(result.latency)}"
    gain = (
        ""
        if result.speedup is None or not result.tried
        else f", {result.speedup:.2f}x in {result.tried} candidates"
    )
    detail = f": {result.detail}" if result.detail else ""
    search = f"{result.search}: " if result.search else ""
    return f"{search}{result.group} {result.name}: {result.status}{time}{gain}{detail}"
