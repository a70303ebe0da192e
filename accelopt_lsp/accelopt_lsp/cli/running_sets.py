"""What ``bench kernelbench`` and ``bench flashinfer`` share: options, the run and the table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from accelopt_lsp.cli.failures import CommandFailed, Exit, wrong_input
from accelopt_lsp.cli.opening import open_host, settings_for, targets_for
from accelopt_lsp.cli.options import host_option, json_option, target_option
from accelopt_lsp.cli.terminal import out, print_json, printable, say

if TYPE_CHECKING:
    from accelopt_lsp.bench.kernel_sets import SetTask
    from accelopt_lsp.bench.set_metrics import SetResult
    from accelopt_lsp.settings.load import Settings

F = TypeVar("F", bound=Callable[..., Any])

NOTE = "Speedups are over the kernel that the search began with; PyTorch itself is not timed."


def set_options(folder: str) -> Callable[[F], F]:
    """The options of both commands; ``folder`` is where results go unless said otherwise."""
    options: list[Callable[[F], F]] = [
        click.option("--tasks", metavar="TEXT", default="", help="Only tasks whose name holds this."),
        click.option(
            "--out", "folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", default=Path(folder),
            show_default=True, help="Where the results go. A run that was ended goes on there.",
        ),
        click.option("--optimize", is_flag=True, help="Search faster versions of every kernel that passes."),
        click.option("--no-model", is_flag=True, help="Ask no model, whatever the settings say."),
        click.option("--budget", metavar="LIMITS", default="60", show_default=True, help="Per task; see `optimize`."),
        target_option,
        host_option,
        json_option,
    ]  # fmt: skip

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def run_tasks(
    read: Callable[[], list[SetTask]], tasks: str, folder: Path, optimize: bool, no_model: bool, budget: str,
    target: str | None, host: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Run the set and print its metrics. Exit code 1: a kernel is wrong, absent or could not be run."""
    from accelopt_lsp.bench.set_metrics import metrics

    settings = settings_for(Path.cwd(), {"host": host})
    try:
        chosen = [task for task in read() if tasks in task.name]
    except ValueError as error:
        raise wrong_input(str(error)) from None
    if not chosen:
        raise wrong_input(f"The set has no task whose name holds {tasks!r}.")
    results = asyncio.run(_run(settings, chosen, folder, optimize, no_model, budget, target))
    rows = metrics(results)
    if as_json:
        print_json({"note": NOTE, "metrics": rows, "results": results})
    else:
        _print(rows)
    return Exit.DONE if all(result.status == "passed" for result in results) else Exit.NO


async def _run(
    settings: Settings, tasks: Sequence[SetTask], folder: Path, optimize: bool, no_model: bool, budget: str,
    target: str | None,
) -> list[SetResult]:  # fmt: skip
    from accelopt_agent.tools import ToolLost
    from accelopt_lsp.asking import team_to_ask
    from accelopt_lsp.bench.running_sets import SetPlan, run_set
    from accelopt_lsp.cli.optimize import budget_of
    from accelopt_memory.memory import Memory

    team, why_not = (None, "") if no_model or not optimize else team_to_ask(settings, Path.cwd() / "set")
    if why_not:
        say(why_not)
    results: list[SetResult] = []
    host = open_host(settings)
    memory: Memory | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        memory = Memory.open(folder / "memory.db") if optimize else None
        limits = budget_of(settings, budget) if optimize else None
        where = targets_for(settings, target)["triton"]
        plan = SetPlan(where, folder.resolve(), settings.job_limits, limits, memory, team)
        async with aclosing(run_set(host, tasks, plan)) as told:
            async for result in told:
                results.append(result)
                say(_line(result))
    except OSError as error:
        raise CommandFailed(Exit.UNAVAILABLE, f"{folder} cannot be written: {error.strerror}.") from None
    except ToolLost as error:
        raise CommandFailed(Exit.UNAVAILABLE, str(error)) from None
    finally:
        await host.close()
        if memory is not None:
            memory.close()
    return results


def _line(result: SetResult) -> str:
    time = "" if result.latency.us is None else f", {result.latency.us:.4g} us {result.latency.known.value}"
    gain = (
        ""
        if result.speedup is None or not result.tried
        else f", {result.speedup:.2f}x in {result.tried} candidates"
    )
    detail = f": {result.detail}" if result.detail else ""
    return f"{result.group} {result.name}: {result.status}{time}{gain}{detail}"


def _print(rows: Sequence[Any]) -> None:
    from rich.table import Table

    columns = (
        "group",
        "tasks",
        "success",
        "fast_1",
        "faster",
        "mean speedup",
        "geometric mean",
        "timed",
        "times",
        "cost",
    )
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(
            printable(row.group), str(row.tasks), _shown(row.success, " %"), _shown(row.fast_1, " %"),
            _shown(row.faster, " %"), _shown(row.mean_speedup, "x"), _shown(row.geometric_mean_speedup, "x"),
            str(row.timed), row.known, _shown(row.money, ""),
        )  # fmt: skip
    out().print(table)
    say(NOTE)


def _shown(number: float | None, unit: str) -> str:
    return "-" if number is None else f"{number:.3g}{unit}"
