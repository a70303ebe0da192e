"""Implements ``accelopt migrate``: moves a file of NKI's Beta 1 to today's NKI, and compares what both do."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.failures import Exit, wrong_input
from accelopt_lsp.cli.options import host_option, json_option, kernel_file, problem_option
from accelopt_lsp.cli.surface import call_service
from accelopt_lsp.cli.terminal import err, print_json
from accelopt_lsp.resources import read_file, settings_for, with_target, write_new
from accelopt_lsp.stderr import printable, say
from accelopt_profiling.duration import duration_text

if TYPE_CHECKING:
    from accelopt_agent.migration.comparison import ComparedMigration
    from accelopt_lsp.service.local import LocalService


@click.command()
@kernel_file()
@problem_option
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Where to write the text; FILE_nki.py beside the original otherwise.",
)  # fmt: skip
@click.option(
    "--target", metavar="NAME", default="trn2", show_default=True,
    help="The core that both are emulated on and timed for.",
)  # fmt: skip
@host_option
@json_option
def migrate(
    file: Path, problem: str | None, output: Path | None, target: str, host: str | None, as_json: bool
) -> int:
    """Move FILE from NKI's Beta 1 to today's NKI, in a new file.

    The original is run on its problem's inputs, for what the text does not tell; then both are run, each in the
    emulator of its dialect, and every launch's outputs are compared: in each case of the problem, and with each flag
    of the launches turned. What cannot be moved by itself is marked in the new text by a comment with the reason. A
    text that does not run is written as FILE_nki.py.draft. A file that exists is not overwritten.

    Exit code 0: all is moved, all of it ran, and equal in every case. 1: it is not. 2: there is no problem, or the
    original fails.
    """
    settings = settings_for(file, {"host": host, **({"problem": problem} if problem else {})})
    core = with_target(settings, target, ["nki"]).target.nki
    kernel_text = read_file(file, settings)
    path = output or file.with_name(f"{file.stem}_nki.py")
    if path.exists():
        raise wrong_input(f"{path} exists already; name another file with --output.")

    async def work(service: LocalService) -> ComparedMigration:
        with err().status(f"moving {printable(file.name)} on {settings.host} ..."):
            return await service.migrate(kernel_text, core)

    migration = call_service(work)
    path = migration.written_as(path)
    write_new(path, migration.text)
    if as_json:
        print_json(
            {
                "file": str(file), "path": str(path), "equal": migration.equal, "unmoved": migration.unmoved,
                "cases": [dataclasses.asdict(case) for case in migration.cases], "stopped": migration.stopped,
                "not_compared": migration.not_compared, "loops": migration.loops,
            }
        )  # fmt: skip
    else:
        _print(path, migration)
    return Exit.DONE if migration.equal else Exit.NO


def _print(path: Path, migration: ComparedMigration) -> None:
    say(printable(f"Wrote {path}."))
    for line in migration.unmoved:
        say(printable(f"Line {line.line} of the original is not moved: {line.reason}."))
    for case in migration.cases:
        times = ""
        if case.before_us is not None and case.after_us is not None:
            times = f"; est. {duration_text(case.before_us)} before, {duration_text(case.after_us)} after"
        outcome = "equal" if case.equal else f"not equal: {case.detail}"
        say(printable(f"{case.case}: {outcome}{times}"))
        if case.note:
            say(printable(f"Note: {case.note}"))
    for reason in migration.not_compared:
        say(printable(f"Not compared: {reason}."))
    if migration.loops:
        say(printable(migration.loops))
    if migration.stopped:
        say(printable(f"The new text does not run: {migration.stopped}"))
        say(printable("It is a draft to complete by hand, and no Python file yet."))
