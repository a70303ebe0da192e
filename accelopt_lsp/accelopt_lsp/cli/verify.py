"""``accelopt verify``: the gate alone."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.failures import Exit, wrong_input
from accelopt_lsp.cli.opening import open_host, open_memory, read_source, settings_for
from accelopt_lsp.cli.options import host_option, json_option, kernel_file, target_option
from accelopt_lsp.cli.profile import request_for
from accelopt_lsp.cli.terminal import err, out, print_json, printable, say

if TYPE_CHECKING:
    from accelopt_lsp.settings.load import Settings
    from accelopt_profiling.gate.verdict import Verdict
    from accelopt_profiling.measurement import Dialect
    from accelopt_profiling.profiler import ProfileRequest, Subject
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
@json_option
def verify(
    candidate: Path, problem: str, original: Path | None, target: str | None, host: str | None, as_json: bool
) -> int:
    """Whether CANDIDATE is correct, complete and honest. Exit code 0: accepted, 1: rejected."""
    settings = settings_for(original or candidate, {"problem": problem, "host": host})
    text = read_source(candidate)
    base = read_source(original) if original else text
    refused = _no_kernel(text) if original is None else None
    if refused is None:
        request = request_for(original or candidate, base, settings, target)
        subject = _subject(request, original or candidate)
        verdict = asyncio.run(_check(settings, request, subject, text))
    else:
        verdict = refused
    if as_json:
        from accelopt_lsp.cli.shapes import verdict_object

        print_json(verdict_object(verdict))
    else:
        _print(verdict)
    return Exit.DONE if verdict.accepted else Exit.NO


def _no_kernel(text: str) -> Verdict | None:
    """The refusal of a candidate that has nothing to check; None when it has a kernel."""
    from accelopt_profiling.gate.verdict import Reason, Verdict
    from accelopt_profiling.kernels import find_kernels

    discovery = find_kernels(text)
    if any(not kernel.device_function for kernel in discovery.kernels):
        return None
    broken = [f for f in discovery.findings if f.code == "syntax-error"]
    if broken:
        return Verdict(False, [Reason("does-not-parse", f"{broken[0].message} (line {broken[0].line})")])
    return Verdict(
        False, [Reason("no-kernel", "The candidate has no Triton or NKI kernel that host code launches.")]
    )


def _subject(request: ProfileRequest, file: Path) -> Subject:
    """The kernels and the problem that was asked for, wherever it lies and whatever a comment in the file names.

    Raises CommandFailed: there is no kernel, or the problem cannot be used."""
    from accelopt_profiling.profiler import examine

    problem = Path(str(request.problem))
    root = request.project_root
    inside = root is not None and problem.resolve().is_relative_to(root.resolve())
    asked = dataclasses.replace(
        request, text=request.text.replace("accelopt:", "accelopt "), project_root=root if inside else None
    )
    subject = examine(asked)
    errors = [f"{file}:{f.line}: {f.message}" for f in subject.findings if f.severity == "error"]
    if errors or subject.found.ref is None or not subject.kernels:
        raise wrong_input("\n".join(errors) or f"{file} has no kernel, or the problem gives it no inputs.")
    return subject


async def _check(settings: Settings, request: ProfileRequest, subject: Subject, text: str) -> Verdict:
    """The gate's verdict, once for each dialect of the file's kernels; the first refusal ends it."""
    from accelopt_profiling.gate.gate import GateRequest, check
    from accelopt_profiling.problems.found import source_for

    assert subject.found.ref is not None
    host = open_host(settings)
    try:
        before = source_for(request.path, request.text, subject.found, ship_imports=host.remote)
        after = source_for(request.path, text, subject.found, ship_imports=host.remote)
        verdicts: list[Verdict] = []
        for dialect in dict.fromkeys(kernel.dialect for kernel in subject.kernels):
            asked = GateRequest(
                candidate=after,
                original=before,
                problem=subject.found.ref,
                kernel=_changed(subject, dialect, text),
                dialect=dialect,
                target=request.targets[dialect],
                limits=request.limits,
            )
            with err().status(f"checking {printable(request.path.name)} on {host.name} ..."):
                verdict, receipt = await check(host, asked)
            _keep(settings, receipt)
            verdicts.append(verdict)
            if not verdict.accepted:
                return verdict
    finally:
        await host.close()
    return _together(verdicts)


def _changed(subject: Subject, dialect: Dialect, text: str) -> str:
    """The one kernel that differs in the candidate; "" where several do, or none."""
    from accelopt_profiling.kernels import find_kernels

    now = {kernel.name: kernel.content_hash for kernel in find_kernels(text).kernels}
    changed = [k.name for k in subject.kernels if k.dialect == dialect and now.get(k.name) != k.content_hash]
    return changed[0] if len(changed) == 1 else ""


def _together(verdicts: list[Verdict]) -> Verdict:
    """One verdict for several dialects: all that is worth knowing, the evidence of the last."""
    reasons = [reason for verdict in verdicts for reason in verdict.reasons]
    checks = [check for verdict in verdicts for check in verdict.checks]
    return dataclasses.replace(verdicts[-1], reasons=reasons, checks=checks)


def _keep(settings: Settings, receipt: Receipt) -> None:
    from accelopt_memory.errors import MemoryUnavailable

    try:
        with open_memory(settings) as memory:
            memory.add_receipt(receipt)
    except MemoryUnavailable as error:
        say(f"The receipt was not kept. {error}")


def _print(verdict: Verdict) -> None:
    console = out()
    console.print(
        "accepted" if verdict.accepted else "rejected", style="green" if verdict.accepted else "red"
    )
    for reason in verdict.reasons:
        console.print(printable(f"  {reason.code}: {reason.message}"))
    if verdict.receipt:
        console.print(f"  receipt {verdict.receipt}", style="dim")
