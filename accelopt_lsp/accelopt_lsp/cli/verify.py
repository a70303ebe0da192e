"""Implements ``accelopt verify``: runs the gate alone."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.failures import Exit
from accelopt_lsp.cli.options import host_option, isolation_option, json_option, kernel_file, target_option
from accelopt_lsp.cli.terminal import err, out, print_json
from accelopt_lsp.errors import UserError
from accelopt_lsp.gate_check import GateCheck, gate_requests, without_kernel
from accelopt_lsp.resources import open_host, open_memory, read_source, settings_for, targets_for
from accelopt_lsp.stderr import printable, say

if TYPE_CHECKING:
    from accelopt_lsp.settings.load import Settings
    from accelopt_profiling.gate.verdict import Verdict
    from accelopt_profiling.receipt import Receipt


@click.command()
@kernel_file("candidate")
@click.option(
    "--problem", metavar="FILE", required=True, help="The problem: inputs, a reference and tolerances."
)
@click.option(
    "--original",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The kernel file before the rewrite; only its problem's functions are trusted.",
)
@target_option
@host_option
@isolation_option
@json_option
def verify(
    candidate: Path,
    problem: str,
    original: Path | None,
    target: str | None,
    host: str | None,
    require_isolation: bool | None,
    as_json: bool,
) -> int:
    """Check that CANDIDATE is correct, complete and honest.

    Exit code 0: accepted, 1: rejected, 2: the problem cannot be used, 3: the host failed at it.
    """
    settings = settings_for(
        original or candidate, {"problem": problem, "host": host, "require_isolation": require_isolation}
    )
    from accelopt_profiling.kernels import find_kernels

    text = read_source(candidate)
    base = read_source(original) if original else text
    verdict = without_kernel(text) if original is None else None
    covered: list[str] = []
    if verdict is None:
        request = GateCheck(
            (original or candidate).resolve(), text, base, Path(str(settings.problem)), settings.project_root,
            targets_for(settings, target, find_kernels(base).kernels), settings.job_limits,
        )  # fmt: skip
        verdict, covered = asyncio.run(_check(settings, request))
    if verdict.invalid_problem:
        raise UserError("\n".join(reason.message for reason in verdict.reasons))
    if as_json:
        from accelopt_lsp.cli.shapes import verdict_object

        print_json(verdict_object(verdict))
    else:
        _print(verdict, covered)
    if any(reason.code == "gate-failed" for reason in verdict.reasons):
        return Exit.UNAVAILABLE
    return Exit.DONE if verdict.accepted else Exit.NO


async def _check(settings: Settings, gate_check: GateCheck) -> tuple[Verdict, list[str]]:
    """Return the gate's verdict and what it covered, over the dialects of the file; the first refusal ends it."""
    from accelopt_profiling.gate.gate import check
    from accelopt_profiling.gate.scope import scope

    host = open_host(settings)
    try:
        verdicts: list[Verdict] = []
        covered: list[str] = []
        for request in gate_requests(gate_check, ship_imports=host.remote):
            with err().status(f"checking {printable(gate_check.file.name)} on {host.name} ..."):
                verdict, receipt = await check(host, request)
            _keep(settings, receipt)
            verdicts.append(verdict)
            if not verdict.accepted:
                return verdict, []
            covered += scope(verdict, request.dialect)
    finally:
        await host.close()
    return _together(verdicts), covered


def _together(verdicts: list[Verdict]) -> Verdict:
    """Return one verdict for several dialects: all that is worth knowing, the evidence of the last."""
    reasons = [reason for verdict in verdicts for reason in verdict.reasons]
    checks = [check for verdict in verdicts for check in verdict.checks]
    return dataclasses.replace(verdicts[-1], reasons=reasons, checks=checks)


def _keep(settings: Settings, receipt: Receipt) -> None:
    from accelopt_memory.errors import MemoryUnavailableError

    try:
        with open_memory(settings) as memory:
            memory.add_receipt(receipt)
    except MemoryUnavailableError as error:
        say(f"The receipt was not kept. {error}")


def _print(verdict: Verdict, covered: list[str]) -> None:
    console = out()
    console.print(
        "accepted" if verdict.accepted else "rejected", style="green" if verdict.accepted else "red"
    )
    for reason in verdict.reasons:
        console.print(printable(f"  {reason.code}: {reason.message}"))
    for sentence in covered:
        console.print(printable(f"  {sentence}"), style="dim")
    if verdict.receipt:
        console.print(f"  receipt {verdict.receipt}", style="dim")
