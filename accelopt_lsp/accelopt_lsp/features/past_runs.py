"""Write the Markdown page about the searches of a file: what each tried, in order, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accelopt_agent.model.ledger import ledger_line
from accelopt_agent.search.history import PastRun, PastStep
from accelopt_lsp.features.wording import duration_interval, escaped
from accelopt_profiling.quantity import Known

#: So many steps of one run are listed, the last ones.
STEPS = 200


def past_runs_page(file: str, runs: Sequence[PastRun]) -> str:
    """Return the page about the ``runs`` of ``file``, newest first. All times are UTC."""
    if not runs:
        return f"# Searches in {escaped(file)}\n\nThere is none in the memory.\n"
    parts = [f"# Searches in {escaped(file)}", _list(runs), *(_run(run) for run in runs)]
    return "\n\n".join(parts) + "\n"


def headline(past: PastRun) -> str:
    """Return ``2026-11-21 18:15 silu on trn1: finished, 6 tried, 3 offered``."""
    run = past.run
    kernel = f" {run.kernel}" if run.kernel else ""
    came = f"{past.state}, {past.tried} tried, {len(past.suggestions)} offered"
    return f"{_minute(run.started)}{kernel} on {run.target}: {came}"


def _list(runs: Sequence[PastRun]) -> str:
    rows = [
        f"| {_minute(p.run.started)} | {escaped(p.run.kernel)} | {p.run.target} | {escaped(p.run.host)} | {p.tried} |"
        f" {len(p.suggestions)} | {p.state} | `{p.run.id}` |"
        for p in runs
    ]
    head = [
        "| began (UTC) | kernel | target | host | tried | offered | status | run |",
        "|---|---|---|---|---:|---:|---|---|",
    ]
    return "\n".join([*head, *rows])


def _run(past: PastRun) -> str:
    parts = [f"## {escaped(headline(past))} (`{past.run.id}`)", *_about(past)]
    steps = past.steps[-STEPS:]
    if len(past.steps) > STEPS:
        parts.append(f"The first {len(past.steps) - STEPS} steps are left out.")
    rows = ["| time | step | came to | takes |", "|---|---|---|---|", *map(_step, steps)]
    parts.append("\n".join(rows) if steps else "Nothing was written down.")
    return "\n\n".join(parts)


def _about(past: PastRun) -> Iterator[str]:
    options, result = past.run.options, past.run.result
    instructions = options.get("instructions")
    if isinstance(instructions, str) and instructions:
        yield f"Instructions: {escaped(instructions)}"
    if options.get("resumes"):
        yield "It took over what earlier runs had paid for."
    if isinstance(reason := result.get("reason"), str):
        yield f"Ended: {escaped(reason)}."
    if line := ledger_line(past.calls):
        yield line


def _step(step: PastStep) -> str:
    came = f"suggestion `{step.suggestion}`" if step.suggestion else escaped(_one_line(step.outcome))
    what = escaped(_one_line(step.what)) + (f" (`{step.origin}`)" if step.origin else "")
    is_known = step.latency is not None and step.latency.known is not Known.NOT_MEASURED
    took = duration_interval(step.latency) if step.latency is not None and is_known else ""
    return f"| {step.at[11:19]} | {what} | {came} | {took} |"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _minute(moment: str) -> str:
    return moment[:16].replace("T", " ")
