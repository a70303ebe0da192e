"""Implements ``accelopt bench search``: search strategies with a simulated proposer."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accelopt_benchmarks.checkout import EXAMPLES
from accelopt_benchmarks.result import end
from accelopt_lsp.cli.failures import wrong_input
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import out
from accelopt_lsp.stderr import printable, say

if TYPE_CHECKING:
    from accelopt_benchmarks.result import GoalResult
    from accelopt_benchmarks.search.study import KernelResult, StudyPlan
    from accelopt_benchmarks.search.summary import Interval
    from accelopt_benchmarks.search.tokens import Tokens


@click.command()
@click.argument("names", nargs=-1)
@click.option(
    "--seeds", type=click.IntRange(1, 1000), default=20, show_default=True, help="Runs per strategy."
)
@click.option(
    "--candidates",
    type=click.IntRange(1, 10_000),
    default=300,
    show_default=True,
    help="Ends a run at the latest; one that did not come near the best then counts as so many.",
)
@click.option(
    "--texts", type=click.IntRange(0, 10_000), default=60, show_default=True,
    help="Rule compositions per kernel whose costs are found out, fastest first: the world that is searched.",
)  # fmt: skip
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep costs and outcomes here: goes on after an end.",
)
@click.option(
    "--data", type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A checkout of AccelOpt: count tokens on its kernels, with its prompts beside ours.",
)  # fmt: skip
@click.option("--no-study", is_flag=True, help="Count tokens only.")
@json_option
def search(
    names: tuple[str, ...],
    seeds: int,
    candidates: int,
    texts: int,
    cache: Path | None,
    data: Path | None,
    no_study: bool,
    as_json: bool,
) -> int:
    """Compare search strategies with a simulated proposer.

    On the tasks and examples NAMES, or on all.

    Costs are real (found out once per text), the proposer is not a model: it draws from the rule catalogue and
    breaks half of its edits. Exit code 1: a goal is missed.
    """
    from accelopt_benchmarks.search.kernels import study_kernels
    from accelopt_benchmarks.search.study import StudyPlan
    from accelopt_benchmarks.search.summary import per_subject, rows, summaries

    if data is not None and not (data / "prompts").is_dir():
        raise wrong_input(f"{data} is no whole checkout of AccelOpt: it has no prompts.")
    with tempfile.TemporaryDirectory(prefix="accelopt-study-") as folder:
        plan = StudyPlan(cache or Path(folder) / "cache", seeds, texts, candidates)
        try:
            chosen = study_kernels(Path(folder), EXAMPLES, names)
        except ValueError as error:
            raise wrong_input(str(error)) from error
        results, tokens = asyncio.run(_measure_study(chosen, plan, data, no_study))
    table = [*rows(results, candidates), *_token_rows(tokens)]
    if not as_json:
        _print_search(results, tokens, candidates)
    opened = [f for f in results if f.open]
    strategies = summaries(results, candidates) if opened else []
    by_subject = {f.subject: per_subject(f, candidates) for f in opened}
    return end(table, as_json, strategies=strategies, candidates=by_subject, subjects=results, tokens=tokens)


async def _measure_study(
    chosen: list[Any], plan: StudyPlan, data: Path | None, no_study: bool
) -> tuple[list[KernelResult], list[Tokens]]:
    from accelopt_benchmarks.search import study as study

    results = [] if no_study else await study.study(chosen, plan, say)
    return results, await study.token_counts(chosen, plan, data, say) if data is not None else []


def _token_rows(tokens: list[Tokens]) -> list[GoalResult]:
    from accelopt_benchmarks.search import tokens as counting

    return counting.rows(tokens)


def _print_search(results: list[KernelResult], tokens: list[Tokens], limit: int) -> None:
    from rich.table import Table

    console = out()
    if any(f.open for f in results):
        _print_study(results, limit)
    closed = [f.subject for f in results if not f.open]
    if closed:
        console.print(f"Nothing to find, and so left out: {', '.join(closed)}.")
    if tokens:
        table = Table("kernel", "ours", "AccelOpt's layout", "share", box=None, pad_edge=False)
        for t in tokens:
            table.add_row(printable(t.kernel), str(sum(t.ours)), str(sum(t.theirs)), f"{t.share:.2f}")
        console.print(table)


def _print_study(results: list[KernelResult], limit: int) -> None:
    """One table over all kernels, one of the candidates per kernel."""
    from rich.table import Table

    from accelopt_benchmarks.search.summary import per_subject, summaries

    whole = summaries(results, limit)
    columns = ("strategy", "candidates", "simulated tokens", "calls", "came there", "of beam's", "of tree's")
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=True)
    for s in whole:
        table.add_row(
            s.contender, _with(s.candidates), _with(s.tokens), _with(s.calls), f"{100 * s.reached:.0f} %",
            _with(s.of_beam), _with(s.of_tree),
        )  # fmt: skip
    out().print(table, crop=False, overflow="ignore", soft_wrap=True)
    for f in filter(lambda f: f.open, results):
        counts = "; ".join(f"{name} {_there(*of, f.outcomes)}" for name, of in per_subject(f, limit).items())
        line = (
            f"{f.subject}: {f.base_us:.4g} to {f.least_us:.4g} us, {f.costs} versions. Candidates: {counts}"
        )
        out().print(printable(line), soft_wrap=True)


def _there(candidates: float, reached: int, outcomes: tuple[Any, ...]) -> str:
    """Return the mean candidates of a run, with how many of the runs came there where not all did."""
    seeds = len({o.seed for o in outcomes})
    return f"{candidates:.0f}" if reached == seeds else f"{candidates:.0f} ({reached}/{seeds})"


def _with(interval: Interval) -> str:
    return f"{interval.mean:.3g} ({interval.low:.3g}-{interval.high:.3g})"
