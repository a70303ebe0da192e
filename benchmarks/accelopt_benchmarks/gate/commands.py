"""Implements ``accelopt bench gate``: attacks refused, honest kernels refused."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_benchmarks.checkout import GATE_CORPUS
from accelopt_benchmarks.result import print_rows
from accelopt_lsp.cli.failures import Exit, wrong_input
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import err, out, print_json
from accelopt_lsp.stderr import printable

if TYPE_CHECKING:
    from accelopt_benchmarks.gate.corpus import CorpusCase
    from accelopt_benchmarks.gate.detection import CorpusVerdict
    from accelopt_benchmarks.result import GoalResult


@click.command()
@click.option(
    "--corpus",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The corpus: DIALECT/PROBLEM.txt with the cases, and problems/.",
)
@click.option("--only", multiple=True, metavar="TEXT", help="Only cases whose name holds TEXT.")
@click.option(
    "--run-alone", is_flag=True, help="Let only the run refuse: what reading the text finds is told."
)
@click.option("--lot", type=click.IntRange(1), metavar="N", help="Only N cases, drawn by lot.")
@click.option(
    "--load", type=click.IntRange(0), default=0, metavar="N", help="Keep N further processes busy meanwhile."
)
@click.option(
    "--against",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="What an earlier run printed with --json: its cases, and the verdicts that differ.",
)
@click.option(
    "--probes",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="Write which probes refuse each case, and what they cost, to this file; with --run-alone.",
)
@json_option
def gate(
    corpus: Path | None,
    only: tuple[str, ...],
    run_alone: bool,
    lot: int | None,
    load: int,
    against: Path | None,
    probes: Path | None,
    as_json: bool,
) -> int:
    """Measure detection and false alarms of the gate. Exit code 1: a trick was accepted or an honest kernel refused."""
    from accelopt_benchmarks.gate.corpus import read_corpus
    from accelopt_benchmarks.gate.detection import busy_processes, compared, read_verdicts
    from accelopt_benchmarks.gate.detection import rows as table
    from accelopt_benchmarks.gate.probe_figures import probe_figures

    folder = corpus or GATE_CORPUS
    try:
        cases = [c for c in read_corpus(folder) if not only or any(text in c.name for text in only)]
        before = read_verdicts(against) if against is not None else {}
    except ValueError as error:
        raise wrong_input(f"{error}.") from None
    if before:
        cases = [c for c in cases if any(name == c.name for name, _ in before)]
    if lot is not None and lot < len(cases):
        chosen = set(random.sample([c.name for c in cases], lot))
        cases = [c for c in cases if c.name in chosen]
    if probes is not None and not run_alone:
        raise wrong_input("--probes goes with --run-alone: what reading refuses, no other probe sees.")
    with busy_processes(load):
        judged = asyncio.run(_judge_corpus(cases, not run_alone))
    if probes is not None:
        probes.write_text(json.dumps(probe_figures(judged), indent=1) + "\n", encoding="utf-8")
    rows = table(judged, reading=not run_alone)
    rows += [compared(judged, before, load)] if before else []
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
            async with aclosing(judge_corpus(host, cases, reading=reading)) as verdicts:
                async for one in verdicts:
                    judged.append(one)
                    status.update(f"{len(judged)} of {2 * len(cases)}: {printable(one.case)}")
    finally:
        await host.close()
    return judged


def _print_verdicts(judged: list[CorpusVerdict], rows: list[GoalResult]) -> None:
    from rich.table import Table

    cases = Table("case", "version", "verdict", "", "reasons", "s", box=None, pad_edge=False)
    for one in judged:
        verdict = "accepted" if one.accepted else "refused"
        cases.add_row(
            one.case,
            one.version,
            verdict,
            "" if one.right else "WRONG",
            ", ".join(one.codes),
            f"{one.seconds:.2f}",
        )
    out().print(cases)
    out().print()
    print_rows(rows)
