"""Implements ``accelopt bench nkibench``: runs the 14 tasks, or a user's data set, and prints a table or JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accelopt_lsp.cli.failures import CommandError, Exit, wrong_input
from accelopt_lsp.cli.metrics_table import print_metrics
from accelopt_lsp.cli.model_source import BenchmarkSearch, benchmark_options
from accelopt_lsp.cli.terminal import err, out, print_json
from accelopt_lsp.resources import open_host
from accelopt_lsp.search_plan import require_proposer
from accelopt_lsp.stderr import printable, say

if TYPE_CHECKING:
    from accelopt_agent.events import Event
    from accelopt_agent.model.team import ModelTeam
    from accelopt_agent.request import Budget, OptimizeRequest
    from accelopt_lsp.settings.load import Settings
    from accelopt_memory.memory import Memory
    from accelopt_profiling.hosts.host import Host
    from nkibench.case import BenchmarkCases
    from nkibench.result import TaskResult
    from nkibench.run import BenchmarkPlan
    from nkibench.searching import Searching, SearchVariant


@click.command(name="nkibench")
@click.option(
    "--data", type=click.Path(path_type=Path), metavar="DIR",
    help="A checkout of NKIBench (or of AccelOpt) instead of the tasks that come with AccelOpt LSP.",
)  # fmt: skip
@click.option("--tasks", metavar="NAMES", default="", help="Only these tasks, separated by commas.")
@click.option("--target", metavar="NAME", help="trn1 or trn2. By default trn1 for beta1, trn2 for nki.")
@click.option(
    "--dialect", type=click.Choice(["beta1", "nki"]), default="beta1", show_default=True,
    help="Which baselines to run: neuronxcc.nki's or today's nki's.",
)  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Tasks at a time.")
@benchmark_options("nkibench-results", "200")
def nkibench(
    data: Path | None,
    tasks: str,
    target: str | None,
    dialect: str,
    jobs: int,
    folder: Path,
    as_json: bool,
    **choices: Any,
) -> int:
    """Run NKIBench: verdict, time and percent of peak.

    Per task, and their geometric mean.

    With a search also success, fast_1, mean and geometric mean of the speedups over the baseline, and what a task
    cost; with --ablations of several searches, each with a memory of its own that learns from task to task. With --data
    our estimates are shown beside the published times, and the published shares of peak beside what was found.

    Exit code 1: a kernel is wrong or could not be run. 2: the data set cannot be used.
    """
    from accelopt_profiling.targets.target import default_neuron_target
    from nkibench.metrics import metrics, of_nkibench
    from nkibench.published import against_published, published_summary, published_table
    from nkibench.report import progress, report_object, write_report
    from nkibench.run import BenchmarkPlan, in_order

    search = BenchmarkSearch.of("tasks", "200", in_time=False, **choices)
    names = [name.strip() for name in tasks.split(",") if name.strip()]
    target = target or default_neuron_target(beta1=dialect == "beta1")
    _check_target(target)
    cases = _cases(data, names, dialect)
    by_search: dict[str, list[TaskResult]] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for variant in search.variants:
            name = variant.name
            run = _NkiBenchRun(
                search.settings,
                cases,
                folder=folder,
                plan=BenchmarkPlan(target, dialect, jobs),
                variant=variant,
            )
            by_search[name] = in_order(cases, _results(run, search))
            whole = len(by_search) == 1
            write_report(folder if whole else folder / name.replace(" ", "-"), cases, by_search[name], target)
        _write_comparisons(folder, by_search, own=data is None)
        search.speaker.keep()
    except OSError as error:
        raise wrong_input(
            f"{error.filename or folder} cannot be written: {error.strerror or error}."
        ) from None
    rows = (
        metrics([of_nkibench(r, name) for name, results in by_search.items() for r in results])
        if search.limits is not None
        else []
    )
    results = next(iter(by_search.values()))
    if as_json:
        compared = against_published(results) if data is not None else []
        more: dict[str, Any] = {}
        if rows:
            more = {"metrics": rows, "progress": {name: progress(group) for name, group in by_search.items()}}
        if compared:
            more |= {"published": compared, "published_summary": published_summary(compared)}
        print_json({**report_object(results, target), **more})
    else:
        _print(results)
        if data is not None and (lines := published_table(against_published(results))):
            out().print(printable(lines.split("\n")[2]))
        if rows:
            print_metrics(rows)
        say(f"Table, JSON, CSV and chart are in {folder}.")
    return Exit.DONE if results and all(r.status == "passed" for r in results) else Exit.NO


def _write_comparisons(folder: Path, by_search: dict[str, list[TaskResult]], own: bool) -> None:
    """Write how far the searches had come after so many candidates, and AccelOpt's kernels beside its own results.

    Raises:
        OSError: a file cannot be written.
    """
    from nkibench.published import against_published, published_table
    from nkibench.report import progress_table

    results = next(iter(by_search.values()))
    published = "" if own else published_table(against_published(results))
    for name, text in (("progress.md", progress_table(by_search)), ("published.md", published)):
        if text:
            (folder / name).write_text(text, "utf-8")


def _check_target(target: str) -> None:
    from nkibench.peaks import targets

    if target not in targets():
        raise wrong_input(
            f"--target: NKIBench publishes peaks for {' and '.join(targets())}, not {target!r}."
        )


def _cases(data: Path | None, names: list[str], dialect: str) -> BenchmarkCases:
    from nkibench.case import own_cases
    from nkibench.dataset import DatasetError, read_dataset

    try:
        if data is not None:
            return read_dataset(data, names)
        return own_cases(names, "nki" if dialect == "nki" else "beta1")
    except (DatasetError, ValueError) as error:
        raise wrong_input(str(error)) from None


@dataclass(frozen=True)
class _NkiBenchRun:
    """One pass over the cases, with everything or with parts of the search left out."""

    settings: Settings
    cases: BenchmarkCases
    folder: Path
    plan: BenchmarkPlan
    variant: SearchVariant

    @contextmanager
    def memory(self) -> Iterator[Memory]:
        """Yield a memory of the run's own, so that it starts from nothing but rules, and another one when the time
        model or the gate changes, whose costs and verdicts are no longer worth anything then."""
        from accelopt_memory.memory import Memory
        from nkibench.code import toolchain_hash

        memory = Memory.open(self.folder / f"memory{self.variant.suffix}-{toolchain_hash()[:8]}.db")
        try:
            yield memory
        finally:
            memory.close()

    def searching(self, limits: Budget, team: ModelTeam | None, memory: Memory) -> Searching:
        """Return how to search."""
        from accelopt_agent.optimize import optimize
        from nkibench.searching import Searching

        plan, team = self.variant.plan, self.variant.team_of(team)
        require_proposer(plan.sources, team)

        def start(request: OptimizeRequest, host: Host) -> AsyncGenerator[Event, None]:
            return optimize(request, host, memory, model=team)

        return Searching(limits, start, team.setup if team else "nobody is asked", plan=plan)


def _results(run: _NkiBenchRun, search: BenchmarkSearch) -> list[TaskResult]:
    """Return all results of a pass, in the order in which they came."""
    if search.limits is None:
        return asyncio.run(_run(run.settings, run.cases, run.plan, run.folder))
    with search.speaker.team() as team, run.memory() as memory:
        plan = replace(run.plan, searching=run.searching(search.limits, team, memory))
        return asyncio.run(_run(run.settings, run.cases, plan, run.folder))


async def _run(
    settings: Settings, cases: BenchmarkCases, plan: BenchmarkPlan, folder: Path
) -> list[TaskResult]:
    """Return all results, in the order in which they came. Ended early, what is finished stays in the
    journal."""
    from nkibench.journal import Journal
    from nkibench.result import TaskResult
    from nkibench.run import run

    results: list[TaskResult] = []
    host = open_host(settings)
    progress = _Progress(len(cases.ready) + len(cases.faults))
    try:
        with progress.shown():
            async with aclosing(
                run(host, cases, plan, Journal(folder / "journal.jsonl", TaskResult))
            ) as events:
                async for event in events:
                    if isinstance(event, TaskResult):
                        results.append(event)
                        progress.finished(event)
                    else:
                        progress.working(event.task, event.text)
    except OSError as error:
        raise CommandError(Exit.UNAVAILABLE, f"{folder} cannot be written: {error}.") from None
    finally:
        await host.close()
    return results


def _print(results: list[TaskResult]) -> None:
    """The table on a terminal; the columns of a search only where there was one, faults below it."""
    from rich.table import Table

    from nkibench.chart import headline
    from nkibench.metrics import milliseconds, of_peak
    from nkibench.result import summarise

    searched = any(result.best is not None for result in results)
    table = Table(box=None, pad_edge=False)
    for name in ("task", "result"):
        table.add_column(name, no_wrap=True)
    for name in ("error", "ms", "of peak", *(("best ms", "of peak") if searched else ())):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("bound", no_wrap=True)
    for result in results:
        best = result.best
        best_cells = (milliseconds(best.latency.us), of_peak(result.best_percent)) if best else ("", "")
        error = "" if result.error is None else f"{result.error:.1e}"
        cells = [result.task, result.status, error, milliseconds(result.latency.us), of_peak(result.percent)]
        table.add_row(*map(printable, [*cells, *(best_cells if searched else ()), result.bound or ""]))
    console = out()
    console.print(table)
    for result in results:
        if result.status != "passed":
            console.print(printable(f"{result.task}: {result.detail}"))
    console.print(headline(summarise(results)))


class _Progress:
    """A bar on a terminal, a line per finished task elsewhere."""

    def __init__(self, total: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        console = err()
        self._bar = Progress(
            BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"), console=console
        )  # fmt: skip
        self._live = console.is_terminal
        self._task = self._bar.add_task("", total=total)
        self._doing: dict[str, str] = {}

    def shown(self) -> Any:
        return self._bar if self._live else nullcontext()

    def working(self, task: str, text: str) -> None:
        self._doing[task] = text
        self._describe()

    def finished(self, result: TaskResult) -> None:
        from nkibench.metrics import milliseconds, of_peak

        self._doing.pop(result.task, None)
        self._bar.advance(self._task)
        self._describe()
        latency = (
            f", {milliseconds(result.latency.us)} ms {result.latency.known}" if result.latency.us else ""
        )
        share = f", {of_peak(result.percent)} of peak" if result.percent is not None else ""
        better = f", best {of_peak(result.best_percent)}" if result.best is not None else ""
        detail = f": {result.detail}" if result.status != "passed" else ""
        line = printable(f"{result.task}: {result.status}{latency}{share}{better}{detail}")
        (self._bar.console.print if self._live else say)(line)

    def _describe(self) -> None:
        text = "; ".join(f"{task}: {doing}" for task, doing in self._doing.items())
        self._bar.update(self._task, description=printable(text))
