"""Implements ``accelopt doctor``: lists what is installed, what is missing and how to fix it."""

from __future__ import annotations

import os
from pathlib import Path

import click

from accelopt_lsp.cli.failures import Exit, wrong_input
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import out, print_json
from accelopt_lsp.installation import Check, all_checks
from accelopt_lsp.settings.load import load_settings
from accelopt_lsp.stderr import printable, say

#: The checks that go into a bundle; the others name hosts, files and models.
_ABOUT_DEVICES = ("Python", "numpy", "ml_dtypes", "NKI SDK", "Trainium", "NVIDIA GPU")

_MARKS = {"ok": "ok", "absent": "--", "broken": "!!"}


@click.command()
@click.option(
    "--bundle",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write an archive with what a report about a device needs; it holds no kernels and no secrets.",
)
@json_option
def doctor(bundle: Path | None, as_json: bool) -> int:
    """Check everything that AccelOpt uses. Exit code 1: something that is needed does not work."""

    checks = all_checks(load_settings(Path.cwd()))
    if bundle is not None:
        _write_bundle(bundle, checks)
    healthy = all(check.state != "broken" for check in checks)
    if as_json:
        print_json({"ok": healthy, "checks": checks})
    else:
        from rich.table import Table

        table = Table("", "what", "found", box=None, pad_edge=False)
        for check in checks:
            fix = f"\n{check.fix}" if check.fix else ""
            table.add_row(_MARKS[check.state], check.name, printable(check.found + fix))
        out().print(table)
    return Exit.DONE if healthy else Exit.NO


def _write_bundle(path: Path, checks: list[Check]) -> None:
    from accelopt_profiling.plain import to_plain
    from accelopt_profiling.trainium.bundle import write_bundle
    from accelopt_profiling.trainium.toolchain import find_toolchain

    try:
        about_devices = [check for check in checks if check.name in _ABOUT_DEVICES]
        names = write_bundle(path, find_toolchain(os.environ), to_plain(about_devices), Path.cwd())
    except OSError as error:
        raise wrong_input(f"{path} cannot be written: {error.strerror or error}.") from None
    say(f"{path} holds {', '.join(names)}. Look through it before you send it.")
