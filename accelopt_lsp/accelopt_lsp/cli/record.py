"""Implements ``accelopt record``: runs a command, watches its kernel launches, and writes them as problems."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.failures import CommandError, Exit, wrong_input
from accelopt_lsp.cli.options import json_option, target_option
from accelopt_lsp.cli.terminal import print_json
from accelopt_lsp.resources import local_python, settings_for, with_target
from accelopt_lsp.stderr import say

if TYPE_CHECKING:
    from accelopt_profiling.recording.command import RecordOutcome


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Record the kernels of this file alone, and stop when all have enough shapes (may be repeated).",
)
@click.option(
    "--max-shapes",
    default=8,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Calls of different shapes that are kept for each kernel.",
)
@click.option(
    "--seconds",
    default=300.0,
    show_default=True,
    type=click.FloatRange(min=1.0),
    help="End the command after this time; what it launched until then is recorded.",
)
@click.option(
    "--python", metavar="PATH", help="The interpreter for `python` and `pytest`; else the setting `python`."
)
@target_option
@json_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def record(
    files: tuple[Path, ...],
    max_shapes: int,
    seconds: float,
    python: str | None,
    target: str | None,
    as_json: bool,
    command: tuple[str, ...],
) -> int:
    """Run COMMAND, such as a test, and record problems from it.

    Write `--` before the command. Kernel files below the working folder are recorded, or those that --file names: each
    gets a FILE_recording.json beside it. `python` and `pytest` are those of the setting `python`. Exit code 1: nothing
    was recorded. 2: the command cannot be started.
    """
    from accelopt_profiling.recording import command as recording
    from accelopt_profiling.recording.observer import RecordOptions

    settings = settings_for(Path.cwd(), {"python": python})
    request = recording.RecordRequest(
        command,
        Path.cwd(),
        local_python(settings),
        RecordOptions(files=tuple(str(f) for f in files), max_shapes=max_shapes),
        with_target(settings, target, ["triton"]).target.triton,
        seconds,
        settings.env,
    )
    ended: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    try:
        parent = os.getppid()  # an editor's server that dies takes its command with it
        outcome = recording.record(request, lambda: bool(ended) or os.getppid() != parent)
    except recording.CommandStartError as error:
        raise wrong_input(str(error)) from None
    finally:
        signal.signal(signal.SIGTERM, before)
    if as_json:
        from accelopt_lsp.shapes import record_object

        print_json(record_object(command, outcome))
    else:
        for line in recording.summary(outcome):
            say(line)
    if not outcome.files and not as_json:
        raise CommandError(Exit.NO, _nothing(outcome, bool(files)))
    return Exit.DONE if outcome.files else Exit.NO


def _nothing(outcome: RecordOutcome, files: bool) -> str:
    """Say why nothing was recorded."""
    if outcome.elsewhere:
        first = max(outcome.elsewhere, key=lambda f: outcome.elsewhere[f])
        place = "in another file than --file names" if files else f"outside {os.getcwd()}"
        return f"Nothing was recorded: the kernels that the command launched lie {place}; --file {first} records those."
    if outcome.launches:
        return "Nothing was recorded: none of the launches can be repeated from what is written above."
    return "Nothing was recorded: the command launched no Triton kernel."
