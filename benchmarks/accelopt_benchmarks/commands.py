"""Implements the commands of ``accelopt bench`` that measure the project itself; they need a checkout."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accelopt_benchmarks.checkout import EXAMPLES, GATE_CORPUS, REWRITE_CORPUS
from accelopt_benchmarks.device import PARTS as DEVICE_PARTS
from accelopt_lsp.cli.failures import Exit, wrong_input
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import err, out, print_json
from accelopt_lsp.stderr import printable, say

if TYPE_CHECKING:
    from accelopt_benchmarks.foreign.library_files import LibraryFile, LibraryOutcome, Way
    from accelopt_benchmarks.foreign.rewrites import RewriteOutcome
    from accelopt_benchmarks.gate.corpus import CorpusCase
    from accelopt_benchmarks.gate.detection import CorpusVerdict
    from accelopt_benchmarks.published.comparison import PublishedRow
    from accelopt_benchmarks.result import GoalResult
    from accelopt_benchmarks.search.study import KernelResult, StudyPlan
    from accelopt_benchmarks.search.summary import Interval
    from accelopt_benchmarks.search.tokens import Tokens

HOST_PARTS = ("overhead", "killed", "gate")

examples_option = click.option(
    "--examples", type=click.Path(path_type=Path), default=EXAMPLES, help="The folder of the example kernels."
)


def _check_examples(folder: Path) -> None:
    if not (folder / "nki_silu.py").exists():
        raise wrong_input(f"{folder} has no nki_silu.py; give the project's examples with --examples.")


def _print_rows(rows: Sequence[GoalResult]) -> None:
    from rich.table import Table

    table = Table("what", "goal", "found", "", "how", box=None, pad_edge=False)
    for row in rows:
        met = {True: "met", False: "missed", None: ""}[row.met]
        value = "not measured" if row.value is None else f"{row.value:.3g} {row.unit}"
        table.add_row(printable(row.what), row.goal, value, met, printable(row.detail))
    out().print(table)


@click.command(name="self")
@examples_option
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    multiple=True,
    help="A checkout with published measurements (Liger-Kernel, AccelOpt); can be given again.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="TEXT",
    help="Only measurements whose name holds TEXT: first numbers, answers, start.",
)
@json_option
def self_(examples: Path, data: tuple[Path, ...], only: tuple[str, ...], as_json: bool) -> int:
    """Measure what AccelOpt promises, on this machine. Exit code 1: a goal is missed."""
    _check_examples(examples)
    rows = asyncio.run(_measure_self(examples, data, only))
    missed = any(row.met is False for row in rows)
    if as_json:
        print_json({"met": not missed, "rows": rows})
    else:
        _print_rows(rows)
    return Exit.NO if missed else Exit.DONE


async def _measure_self(examples: Path, data: Sequence[Path], only: Sequence[str]) -> list[GoalResult]:
    from accelopt_benchmarks.foreign import files, triton_bench
    from accelopt_benchmarks.nki import time_model
    from accelopt_benchmarks.server import responsiveness, startup

    measures: dict[str, Callable[[], Awaitable[list[GoalResult]]]] = {
        "first numbers": partial(responsiveness.first_numbers, examples),
        "answers": partial(responsiveness.answers, examples),
        "start": partial(startup.startup, examples),
        "files of others": partial(files.files_of_others, examples),
        "files of TritonBench": partial(triton_bench.triton_bench, data),
        "published times of Liger-Kernel": partial(files.liger_times, data),
        "published times of NKI kernels": partial(time_model.time_model, data),
    }
    rows: list[GoalResult] = []
    for name, measure in measures.items():
        if only and not any(text in name for text in only):
            continue
        say(f"measuring {name} ...")
        rows += await measure()
    return rows


@click.command()
@click.option("--only", default="", metavar="TEXT", help="Only publications whose name holds TEXT.")
@json_option
def estimates(only: str, as_json: bool) -> int:
    """Compare the estimate of Triton kernels with times that others published. Exit code 1: a goal is missed.

    Takes half an hour on two quiet cores: the kernels run at full size, two programs of each.
    """
    from accelopt_benchmarks.published.comparison import compare, summary

    found = []
    for row in compare(only):
        say(f"{row.group}: {row.shape}: {row.measured_us:.4g} us, estimated {row.estimate_us:.4g}")
        found.append(row)
    if not found:
        raise wrong_input(f"No publication's name holds {only!r}.")
    rows = summary(found)
    met = all(row.met is not False for row in rows)
    if as_json:
        print_json({"met": met, "rows": rows, "figures": found})
    else:
        _print_published(found)
        _print_rows(rows)
    return Exit.DONE if met else Exit.NO


def _print_published(found: Sequence[PublishedRow]) -> None:
    from rich.table import Table

    columns = ("published", "shape", "tile", "us", "estimate (us)", "interval", "ratio", "bound")
    table = Table(*columns, box=None, pad_edge=False)
    for row in found:
        interval = f"{row.low_us:.4g}-{row.high_us:.4g}" + ("" if row.inside else " MISSED")
        table.add_row(
            row.group, row.shape, row.tile, f"{row.measured_us:.4g}", f"{row.estimate_us:.4g}", interval,
            f"{row.ratio:.2f}", row.bound,
        )  # fmt: skip
    out().print(table)
    out().print()


@click.command()
@click.option(
    "--corpus",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The corpus: DIALECT/CASE with case.json, attack.py and honest.py, and problems/.",
)
@click.option("--only", multiple=True, metavar="TEXT", help="Only cases whose name holds TEXT.")
@click.option(
    "--run-alone", is_flag=True, help="Let only the run refuse: what reading the text finds is told."
)
@json_option
def gate(corpus: Path | None, only: tuple[str, ...], run_alone: bool, as_json: bool) -> int:
    """Detection and false alarms of the gate. Exit code 1: a trick was accepted or an honest kernel refused."""
    from accelopt_benchmarks.gate.corpus import read_corpus
    from accelopt_benchmarks.gate.detection import rows as table

    folder = corpus or GATE_CORPUS
    try:
        cases = [c for c in read_corpus(folder) if not only or any(text in c.name for text in only)]
    except ValueError as error:
        raise wrong_input(f"{error}.") from None
    judged = asyncio.run(_judge_corpus(cases, not run_alone))
    rows = table(judged, reading=not run_alone)
    if as_json:
        print_json({"met": all(r.met for r in rows), "rows": rows, "cases": judged})
    else:
        _print_verdicts(judged, rows)
    return Exit.DONE if all(j.right for j in judged) else Exit.NO


async def _judge_corpus(cases: list[CorpusCase], reading: bool) -> list[CorpusVerdict]:
    from accelopt_benchmarks.gate.detection import judge_corpus
    from accelopt_profiling.hosts.local import LocalHost

    host = LocalHost()
    judged: list[CorpusVerdict] = []
    try:
        with err().status("checking the corpus ...") as status:
            async with aclosing(judge_corpus(host, cases, reading=reading)) as told:
                async for one in told:
                    judged.append(one)
                    status.update(f"{len(judged)} of {2 * len(cases)}: {printable(one.case)}")
    finally:
        await host.close()
    return judged


def _print_verdicts(judged: list[CorpusVerdict], rows: list[GoalResult]) -> None:
    from rich.table import Table

    cases = Table("case", "file", "verdict", "", "reasons", "s", box=None, pad_edge=False)
    for one in judged:
        verdict = "accepted" if one.accepted else "refused"
        cases.add_row(
            one.case,
            one.file,
            verdict,
            "" if one.right else "WRONG",
            ", ".join(one.codes),
            f"{one.seconds:.2f}",
        )
    out().print(cases)
    out().print()
    _print_rows(rows)


@click.command()
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(HOST_PARTS),
    help="Only this part; can be given again.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=30,
    help="Candidates per way of running them, and checks.",
)
@click.option(
    "--candidates", type=click.IntRange(2, 10000), default=200, help="Candidates while workers are killed."
)
@examples_option
@json_option
def hosts(parts: tuple[str, ...], rounds: int, candidates: int, examples: Path, as_json: bool) -> int:
    """What hosts add to a candidate, whether candidates survive killed workers, and how long the gate takes.

    Takes three minutes on a quiet machine, most of it the killed workers. Exit code 1: a goal is missed.
    """
    asked = parts or HOST_PARTS
    if "gate" in asked:
        _check_examples(examples)
    rows = asyncio.run(_measure_hosts(asked, rounds, candidates, examples))
    met = all(row.met for row in rows)
    if as_json:
        print_json({"met": met, "rows": rows})
    else:
        _print_rows(rows)
    return Exit.DONE if met else Exit.NO


async def _measure_hosts(
    parts: tuple[str, ...], rounds: int, candidates: int, examples: Path
) -> list[GoalResult]:
    from accelopt_benchmarks.gate.check_time import gate_time
    from accelopt_benchmarks.hosts.overhead import killed_workers, overhead

    rows: list[GoalResult] = []
    if "overhead" in parts:
        say("measuring the overhead per candidate ...")
        rows += await overhead(rounds)
    if "killed" in parts:
        say("killing workers ...")
        rows += await killed_workers(candidates)
    if "gate" in parts:
        say("checking kernels ...")
        rows += await gate_time(examples, min(rounds, 10))
    return rows


@click.command()
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(DEVICE_PARTS),
    help="Only this part; can be given again.",
)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("device-results"), show_default=True,
    help="Where each part's results go, as PART.json, and the page of all of them, as device.md.",
)  # fmt: skip
@click.option(
    "--seconds",
    type=click.FloatRange(10, 36000),
    default=540.0,
    show_default=True,
    help="For all parts together.",
)
@click.option(
    "--kernelbench", type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A checkout of KernelBench, whose evaluator is run beside ours.",
)  # fmt: skip
@click.option(
    "--page", "only_page", is_flag=True, help="Measure nothing: write the page of what lies below --out."
)
@json_option
def device(
    parts: tuple[str, ...],
    out: Path,
    seconds: float,
    kernelbench: Path | None,
    only_page: bool,
    as_json: bool,
) -> int:
    """Measure on this machine's GPU. Exit code 1: a goal is missed, or something was not measured."""
    from accelopt_benchmarks.device.measuring import measure, read_found
    from accelopt_benchmarks.device.page import page

    try:
        if not only_page:
            asyncio.run(measure(list(parts or DEVICE_PARTS), out, seconds, kernelbench, say))
        found = read_found(out)
        if not found:
            raise wrong_input(f"{out} holds no results of parts.")
        text = page(found)
        (out / "device.md").write_text(text, encoding="utf-8")
    except ValueError as error:
        raise wrong_input(f"{error}.") from None
    except OSError as error:
        raise wrong_input(f"{error.filename or out} cannot be written: {error.strerror or error}.") from None
    met = all(
        one.rows and all(row.met is not False and row.value is not None for row in one.rows) for one in found
    )
    if as_json:
        print_json({"met": met, "parts": found})
    else:
        click.echo(text)
    return Exit.DONE if met else Exit.NO


@click.command()
@click.option(
    "--python", required=True, metavar="PROGRAM",
    help="The interpreter whose environment has the packages, torch and triton.",
)  # fmt: skip
@click.option(
    "--data", type=click.Path(path_type=Path, exists=True, file_okay=False), multiple=True,
    help="A checkout of a repository of the list; can be given again.",
)  # fmt: skip
@click.option("--set", "chosen_set", type=click.Choice(["tuned", "lot"]), help="Only this set of files.")
@click.option(
    "--way", "ways", type=click.Choice(["file", "problem"]), multiple=True, default=("file", "problem"),
    help="Profile the file as it is, or after `accelopt problem`; can be given again.",
)  # fmt: skip
@click.option("--only", multiple=True, metavar="TEXT", help="Only files whose path holds TEXT.")
@click.option("--list", "only_list", is_flag=True, help="Print packages and files, and measure nothing.")
@json_option
def foreign(
    python: str,
    data: tuple[Path, ...],
    chosen_set: str | None,
    ways: tuple[Way, ...],
    only: tuple[str, ...],
    only_list: bool,
    as_json: bool,
) -> int:
    """Profile kernel files of libraries as a new user meets them. Exit code 1: fewer have a number than the goal."""
    from accelopt_benchmarks.foreign import library_files

    files = [
        f
        for f in library_files.read_library_files()
        if chosen_set in (None, f.set) and (not only or any(text in f.path for text in only))
    ]
    if only_list:
        print_json({"files": files})
        return Exit.DONE
    found = asyncio.run(_profile_library_files(files, ways, data, python))
    table = library_files.rows(found)
    met = all(row.met is not False for row in table)
    if as_json:
        print_json({"met": met, "rows": table, "files": found})
    else:
        _print_library_files(found)
        _print_rows(table)
    return Exit.DONE if met else Exit.NO


async def _profile_library_files(
    files: list[LibraryFile], ways: Sequence[Way], data: Sequence[Path], python: str
) -> list[LibraryOutcome]:
    from accelopt_benchmarks.foreign import library_files

    folders = [library_files.site_packages(python), *data]
    found: list[LibraryOutcome] = []
    with tempfile.TemporaryDirectory(prefix="accelopt-foreign-") as work:
        for way in ways:
            copies = Path(work) / way
            async with aclosing(
                library_files.profile_library_files(files, way, folders, python, copies)
            ) as outcomes:
                async for one in outcomes:
                    found.append(one)
                    say(f"{len(found)}: {way} {one.file.path}: {one.kernels} of {one.of} kernels have a time")
    return found


def _print_library_files(found: list[LibraryOutcome]) -> None:
    from rich.table import Table

    table = Table("file", "way", "kernels", "us", "result", "s", "first cause", box=None, pad_edge=False)
    for one in found:
        us = "" if one.us is None else f"{one.us:.3g}"
        counts = f"{one.kernels} of {one.of}"
        table.add_row(
            one.file.path, one.way, counts, us, one.correctness, f"{one.seconds:.0f}", printable(one.trouble)
        )
    out().print(table)


@click.command()
@click.argument("kernels", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--budget", default="120", show_default=True, metavar="LIMITS", help="Of each search.")
@click.option(
    "--python", metavar="PROGRAM", help="The interpreter that the kernels need; the setting otherwise."
)
@json_option
def rewrite(kernels: tuple[Path, ...], budget: str, python: str | None, as_json: bool) -> int:
    """Search KERNELS, or the naive kernels and planted slowdowns of the checkout, without a model.

    Exit code 1: a planted slowdown was not named or not mended, or too few kernels got a proved suggestion.
    """
    from accelopt_benchmarks.foreign import rewrites

    chosen = list(kernels) or sorted(REWRITE_CORPUS.glob("*.py"))
    found = asyncio.run(_search_corpus(chosen, budget, python))
    table = rewrites.rows(found)
    met = all(row.met is not False for row in table)
    if as_json:
        print_json({"met": met, "rows": table, "files": found})
    else:
        _print_rewrites(found)
        _print_rows(table)
    return Exit.DONE if met else Exit.NO


async def _search_corpus(chosen: list[Path], budget: str, python: str | None) -> list[RewriteOutcome]:
    from accelopt_benchmarks.foreign import rewrites

    found: list[RewriteOutcome] = []
    with tempfile.TemporaryDirectory(prefix="accelopt-rewrite-") as work:
        async with aclosing(rewrites.search_corpus(chosen, budget, python, Path(work))) as outcomes:
            async for one in outcomes:
                found.append(one)
                say(f"{len(found)} of {len(chosen)}: {one.file}: {_speedup(one) or 'no suggestion'}")
    return found


def _speedup(one: RewriteOutcome) -> str:
    return "" if one.speedup is None else f"{one.speedup:.2f}x"


def _print_rewrites(found: list[RewriteOutcome]) -> None:
    from rich.table import Table

    table = Table("file", "finding", "speedup", "by", "tried", "s", "", box=None, pad_edge=False)
    for one in found:
        finding = "none" if one.finding is None else one.finding
        seconds = f"{one.seconds:.0f}"
        table.add_row(
            one.file, finding, _speedup(one), one.rule, str(one.tried), seconds, printable(one.trouble)
        )
    out().print(table)


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
    """Compare the search strategies with a simulated proposer on the tasks and examples NAMES, or on all.

    Costs are real (found out once per text), the proposer is not a model: it draws from the rule catalogue and
    breaks half of its edits. Exit code 1: a goal is missed.
    """
    from accelopt_benchmarks.search.kernels import study_kernels
    from accelopt_benchmarks.search.study import StudyPlan
    from accelopt_benchmarks.search.summary import rows

    with tempfile.TemporaryDirectory(prefix="accelopt-study-") as folder:
        plan = StudyPlan(cache or Path(folder) / "cache", seeds, texts, candidates)
        try:
            chosen = study_kernels(Path(folder), EXAMPLES, names)
        except ValueError as error:
            raise wrong_input(str(error)) from error
        found, tokens = asyncio.run(_measure_study(chosen, plan, data, no_study))
    table = [*rows(found, candidates), *_token_rows(tokens)]
    if as_json:
        print_json(_search_object(found, tokens, table, candidates))
    else:
        _print_search(found, tokens, table, candidates)
    return Exit.NO if any(row.met is False for row in table) else Exit.DONE


async def _measure_study(
    chosen: list[Any], plan: StudyPlan, data: Path | None, no_study: bool
) -> tuple[list[KernelResult], list[Tokens]]:
    from accelopt_benchmarks.search import study as study

    found = [] if no_study else await study.study(chosen, plan, say)
    return found, await study.token_counts(chosen, plan, data, say) if data is not None else []


def _token_rows(tokens: list[Tokens]) -> list[GoalResult]:
    from accelopt_benchmarks.search import tokens as counting

    return counting.rows(tokens)


def _search_object(
    found: list[KernelResult], tokens: list[Tokens], rows: list[GoalResult], limit: int
) -> dict[str, Any]:
    from accelopt_benchmarks.search.summary import per_subject, summaries

    opened = any(f.open for f in found)
    return {
        "met": not any(row.met is False for row in rows),
        "rows": rows,
        "strategies": summaries(found, limit) if opened else [],
        "candidates": {f.subject: per_subject(f, limit) for f in found if f.open},
        "subjects": found,
        "tokens": tokens,
    }


def _print_search(
    found: list[KernelResult], tokens: list[Tokens], rows: list[GoalResult], limit: int
) -> None:
    from rich.table import Table

    console = out()
    if any(f.open for f in found):
        _print_study(found, limit)
    closed = [f.subject for f in found if not f.open]
    if closed:
        console.print(f"Nothing to find, and so left out: {', '.join(closed)}.")
    if tokens:
        table = Table("kernel", "ours", "AccelOpt's layout", "share", box=None, pad_edge=False)
        for t in tokens:
            table.add_row(printable(t.kernel), str(sum(t.ours)), str(sum(t.theirs)), f"{t.share:.2f}")
        console.print(table)
    for row in rows:
        met = "met" if row.met else "missed"
        console.print(f"{printable(row.what)}: {row.value:.3g} ({row.goal}: {met}); {printable(row.detail)}")


def _print_study(found: list[KernelResult], limit: int) -> None:
    """One table over all kernels, one of the candidates per kernel."""
    from rich.table import Table

    from accelopt_benchmarks.search.summary import per_subject, summaries

    whole = summaries(found, limit)
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
    for f in filter(lambda f: f.open, found):
        counts = "; ".join(f"{name} {_there(*of, f.outcomes)}" for name, of in per_subject(f, limit).items())
        line = (
            f"{f.subject}: {f.base_us:.4g} to {f.least_us:.4g} us, {f.costs} versions. Candidates: {counts}"
        )
        out().print(printable(line), soft_wrap=True)


def _there(candidates: float, reached: int, outcomes: tuple[Any, ...]) -> str:
    """The mean candidates of a run, with how many of the runs came there where not all did."""
    seeds = len({o.seed for o in outcomes})
    return f"{candidates:.0f}" if reached == seeds else f"{candidates:.0f} ({reached}/{seeds})"


def _with(interval: Interval) -> str:
    return f"{interval.mean:.3g} ({interval.low:.3g}-{interval.high:.3g})"
