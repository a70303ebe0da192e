"""Implements ``accelopt runs``: lists past searches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accelopt_lsp.cli.failures import CommandError, Exit
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import print_json, print_markdown
from accelopt_lsp.resources import open_memory, settings_for, settings_with
from accelopt_lsp.stderr import printable

if TYPE_CHECKING:
    from accelopt_agent.search.history import PastRun
    from accelopt_memory.memory import Memory


@click.command()
@click.argument("what", metavar="[FILE|RUN]", required=False)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000))
@json_option
def runs(what: str | None, limit: int, as_json: bool) -> int:
    """List searches, all or those in FILE, or the steps of one RUN.

    A run is named by its id.

    Exit code 1: there is none.
    """
    with _memory_for(what) as memory:
        past_runs = _found(memory, what, limit)
    if as_json:
        print_json({"runs": [_object(past) for past in past_runs]})
        return Exit.DONE if past_runs else Exit.NO
    from accelopt_lsp.features.past_runs import headline, past_runs_page

    one = len(past_runs) == 1 and past_runs[0].run.id == what
    if one:
        print_markdown(past_runs_page(Path(past_runs[0].run.file).name, past_runs))
    for past in [] if one else past_runs:
        click.echo(printable(f"{past.run.id}  {headline(past)}  {past.run.file}"))
    if not past_runs:
        click.echo(
            printable(f"No search in {what} is in the memory." if what else "The memory has no search.")
        )
    return Exit.DONE if past_runs else Exit.NO


def _memory_for(what: str | None) -> Memory:
    """Open the memory that holds the searches in a file, or the search of that id."""
    if what is None:
        return open_memory(read_only=True)
    if Path(what).is_file():
        return open_memory(settings_for(Path(what)), read_only=True)
    return open_memory(settings_with(what), read_only=True)


def _found(memory: Memory, what: str | None, limit: int) -> list[PastRun]:
    from accelopt_agent.search.history import past_run, past_runs

    if what is None:
        return past_runs(memory, None, limit)
    if (run := memory.run_log.run(what)) is not None:
        return [past_run(memory, run)]
    if not Path(what).exists() and not what.endswith(".py"):
        raise CommandError(Exit.NO, f"{what} is neither a file nor the id of a search in the memory.")
    return past_runs(memory, str(Path(what).resolve()), limit)


def _object(past: PastRun) -> dict[str, Any]:
    from accelopt_agent.model.ledger import accounts
    from accelopt_lsp.shapes import latency_object

    run = past.run
    return {
        "id": run.id,
        "file": run.file,
        "kernel": run.kernel,
        "target": run.target,
        "host": run.host,
        "status": past.state,
        "started": run.started,
        "finished": run.finished or None,
        "reason": run.result.get("reason"),
        "resumes": bool(run.options.get("resumes")),
        "tried": past.tried,
        "suggestions": list(past.suggestions),
        "ledger": accounts(past.calls),
        "steps": [
            {
                "at": step.at, "what": step.what, "outcome": step.outcome, "origin": step.origin or None,
                "latency": latency_object(step.latency) if step.latency is not None else None,
                "suggestion": step.suggestion or None,
            }
            for step in past.steps
        ],
    }  # fmt: skip
