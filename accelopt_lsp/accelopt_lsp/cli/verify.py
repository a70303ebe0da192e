"""Implements ``accelopt verify``: runs the gate alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.failures import Exit
from accelopt_lsp.cli.options import host_option, isolation_option, json_option, kernel_file, target_option
from accelopt_lsp.cli.surface import Terminal, call_service
from accelopt_lsp.cli.terminal import err, out, print_json
from accelopt_lsp.resources import read_file, read_source, settings_for
from accelopt_lsp.stderr import printable

if TYPE_CHECKING:
    from accelopt_lsp.service.local import LocalService
    from accelopt_lsp.service.protocol import CheckedCandidate
    from accelopt_profiling.gate.verdict import Verdict


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
    text = read_source(candidate)
    file = read_file(original or candidate, settings, target)

    async def work(service: LocalService) -> CheckedCandidate:
        with err().status(f"checking {printable(file.source.path.name)} on {settings.host} ..."):
            return await service.verify(file, text)

    checked = call_service(work, Terminal("The receipt was not kept."))
    verdict = checked.verdict
    if as_json:
        from accelopt_lsp.shapes import verdict_object

        print_json(verdict_object(verdict))
    else:
        _print(verdict, checked.covered)
    if any(reason.code == "gate-failed" for reason in verdict.reasons):
        return Exit.UNAVAILABLE
    return Exit.DONE if verdict.accepted else Exit.NO


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
