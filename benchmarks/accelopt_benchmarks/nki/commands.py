"""Implements ``accelopt bench nki``: the emulator held against AWS's pages, the time model against a device."""

from __future__ import annotations

from pathlib import Path

import click

from accelopt_lsp.cli.options import json_option


@click.group()
def nki() -> None:
    """Hold NKI without hardware against what AWS documents and others measured."""


@nki.command()
@click.argument("functions", nargs=-1)
@json_option
def conformance(functions: tuple[str, ...], as_json: bool) -> int:
    """Compute what AWS's pages state, and refuse what they forbid.

    FUNCTIONS, such as nisa.tensor_copy, are all by default. Takes some seconds. Exit code 1: a rule does not hold.
    """
    from accelopt_benchmarks.nki.conformance import judge
    from accelopt_benchmarks.nki.page_rules import RULES
    from accelopt_benchmarks.result import GoalResult, end

    results = judge(rule for rule in RULES if not functions or rule.function in functions)
    wrong = [r for r in results if r.verdict != "agrees"]
    values = [r for r in results if r.rule.expected is not None]
    whole = len({r.rule.function for r in results} - {r.rule.function for r in wrong})
    all_functions = len({r.rule.function for r in results})

    def count(verdict: str) -> int:
        return sum(r.verdict == verdict for r in results)

    rows = [
        GoalResult("functions whose rules all hold", ">= 95 %", 100 * whole / max(1, all_functions), "%",
                   whole >= 0.95 * all_functions, f"{whole} of {all_functions}"),
        GoalResult("another value", "0", count("differs"), "", not count("differs"),
                   f"of {len(values)} rules on values"),
        GoalResult("documented, and refused", "0", count("refused") + count("fails"), "",
                   not count("refused") + count("fails"), f"{count('fails')} of them with an error that is no finding"),
        GoalResult("forbidden, and accepted", "0", count("accepted"), "", not count("accepted"),
                   f"of {len(results) - len(values)} rules that forbid"),
        *(GoalResult(f"{r.rule.function} ({r.rule.core}): {r.rule.text}", "as the page says", None, "", None,
                     f"{r.verdict}: {r.detail}" if r.detail else r.verdict) for r in wrong),
    ]  # fmt: skip
    return end(rows, as_json)


@nki.command()
@click.option(
    "--data",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Checkout of Jerry2423/kda-for-trainium, and of zhang677/AccelOpt.",
)
@json_option
def versions(data: tuple[Path, ...], as_json: bool) -> int:
    """Order versions of one kernel, and compare with their times on a device.

    Takes some minutes. Exit code 1: a goal is missed.
    """
    from accelopt_benchmarks.nki.timed_versions import timed_versions
    from accelopt_benchmarks.result import end

    try:
        return end(timed_versions(data), as_json)
    except FileNotFoundError as error:
        raise click.UsageError(str(error)) from error
