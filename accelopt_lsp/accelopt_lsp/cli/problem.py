"""Implements ``accelopt problem``: writes a first version of a problem file, for the user to complete."""

from __future__ import annotations

from pathlib import Path

import click

from accelopt_lsp.cli.failures import CommandError, Exit, wrong_input
from accelopt_lsp.cli.options import json_option, kernel_file
from accelopt_lsp.cli.terminal import print_json
from accelopt_lsp.resources import read_source
from accelopt_lsp.stderr import say


@click.command()
@kernel_file()
@click.option(
    "--kernel", metavar="NAME", help="The kernel to write it for; the first that is launched otherwise."
)
@json_option
def problem(file: Path, kernel: str | None, as_json: bool) -> None:
    """Write a first version of the problem file for the kernels of FILE, to be completed: FILE_problem.py beside it.

    Inputs and reference are guessed from the kernel's signature. A file that exists is not overwritten.
    """
    from accelopt_profiling.kernels import find_kernels
    from accelopt_profiling.problems.discovery.template import problem_template

    text = read_source(file)
    found = find_kernels(text)
    for finding in found.findings:
        if finding.severity == "error":
            raise wrong_input(f"{file}:{finding.line}: {finding.message}")
    launched = [k for k in found.kernels if not k.device_function]
    if not launched:
        raise CommandError(Exit.NO, f"{file} has no kernel that is launched.")
    chosen = next((k for k in launched if kernel in (None, k.name)), None)
    if chosen is None:
        names = ", ".join(k.name for k in launched)
        raise wrong_input(f"{file} has no kernel {kernel!r}; it has {names}.")
    path = file.with_name(f"{file.stem}_problem.py")
    try:
        with path.open("x", encoding="utf-8") as written:
            written.write(problem_template(text, chosen))
    except FileExistsError:
        raise wrong_input(f"{path} exists already; complete it there.") from None
    except OSError as error:
        raise wrong_input(f"{path} cannot be written: {error.strerror}.") from None
    if as_json:
        print_json({"path": str(path), "kernel": chosen.name})
    else:
        say(
            f"Wrote {path} for {chosen.name}: adjust its inputs and reference, then `accelopt profile {file}`."
        )
