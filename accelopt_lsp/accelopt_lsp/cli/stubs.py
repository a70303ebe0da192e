"""Implements ``accelopt stubs``: type stubs of NKI, so that a type checker knows it without the Neuron SDK."""

from __future__ import annotations

from pathlib import Path

import click

from accelopt_lsp.cli.failures import wrong_input
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import print_json
from accelopt_lsp.resources import settings_for
from accelopt_lsp.stderr import printable, say


@click.command()
@click.option(
    "--write", "folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", is_flag=False,
    flag_value=Path(), help="Write them to DIR; without DIR to typings/ in the project, where Pyright looks.",
)  # fmt: skip
@click.option("--nki", "version", metavar="VERSION", help="The version of today's NKI; the newest otherwise.")
@json_option
def stubs(folder: Path | None, version: str | None, as_json: bool) -> None:
    """Write type stubs of nki and neuronxcc.nki, with what each function takes, its limits and its page.

    They are made from the table of operations. A machine without the Neuron SDK needs them; where the SDK is
    installed, a type checker reads that. Without --write nothing is written, and what would be is listed.
    """
    from accelopt_lsp.language.nki_names import newest
    from accelopt_lsp.language.nki_stubs import stubs
    from accelopt_lsp.language.stub_files import FOLDER, ForeignFileError, write_stubs
    from accelopt_profiling.nki.operations.table import table

    chosen, versions = version or newest(), table()["versions"]
    if chosen not in versions:
        raise wrong_input(f"--nki: {chosen} is no version of NKI; there are {', '.join(versions)}.")
    root = settings_for(Path.cwd()).project_root or Path.cwd()
    path = root / FOLDER if folder is None or folder == Path() else folder
    try:
        names = list(stubs(chosen)) if folder is None else write_stubs(path, chosen)
    except ForeignFileError as error:
        raise wrong_input(str(error)) from None
    if as_json:
        print_json({"path": str(path), "nki": chosen, "files": names, "written": folder is not None})
        return
    if folder is None:
        say(printable(f"Type stubs of NKI {chosen} and Beta 1, not written. --write puts them in {path}:"))
        say("\n".join(f"  {name}" for name in names))
    else:
        say(printable(f"Wrote {len(names)} type stubs of NKI {chosen} and Beta 1 to {path}."))
    where = str(path) if root not in path.resolve().parents else path.resolve().relative_to(root).as_posix()
    pyright = "finds them there" if where == FOLDER else f'needs stubPath = "{where}" in [tool.pyright]'
    say(printable(f"Pyright and Pylance: {pyright}."))
    say(printable(f'mypy: mypy_path = "{where}" in [tool.mypy].'))
    say(printable(f'ty: extra-paths = ["{where}"] in [tool.ty.environment].'))
