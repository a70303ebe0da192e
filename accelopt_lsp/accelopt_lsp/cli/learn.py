"""Implements ``accelopt learn``: a person's own slow and fast version, through the gate and into the memory."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.failures import Exit, wrong_input
from accelopt_lsp.cli.options import host_option, isolation_option, json_option, problem_option, target_option
from accelopt_lsp.cli.surface import call_service
from accelopt_lsp.cli.terminal import err, print_json
from accelopt_lsp.errors import RefusedError
from accelopt_lsp.resources import read_file, read_source, settings_for
from accelopt_lsp.stderr import printable
from accelopt_profiling.source_text import decode_source

if TYPE_CHECKING:
    from accelopt_lsp.service.local import LocalService
    from accelopt_lsp.service.protocol import LearnedPair

#: How long git may take to print a file, in seconds.
GIT_SECONDS = 20.0


@click.command()
@click.argument("slow")
@click.argument("fast")
@problem_option
@click.option("--kernel", metavar="NAME", help="The kernel that changed, where several did.")
@click.option("--summary", default="", metavar="TEXT", help="What the change does, in a sentence.")
@target_option
@host_option
@isolation_option
@json_option
def learn(
    slow: str,
    fast: str,
    problem: str | None,
    kernel: str | None,
    summary: str,
    target: str | None,
    host: str | None,
    require_isolation: bool | None,
    as_json: bool,
) -> int:
    """Remember a change of your own, from SLOW to FAST.

    The gate must accept it. Each is a file, or COMMIT:FILE for a file as git has it. Exit code 1: the gate refused it,
    or it is slower.
    """
    from accelopt_lsp.features.wording import times

    path, before = version(slow)
    _, after = version(fast)
    settings = settings_for(path, {"problem": problem, "host": host, "require_isolation": require_isolation})
    file = read_file(path, settings, target, text=after)

    async def work(service: LocalService) -> LearnedPair:
        with err().status(f"checking {printable(path.name)} on {settings.host} ..."):
            return await service.learn(file, before, kernel, summary.strip())

    try:
        learned = call_service(work)
    except RefusedError as error:
        if not as_json:
            raise
        print_json({"learned": False, "reasons": [{"code": error.code, "message": str(error)}], "pair": None})
        return Exit.NO
    pair, name, faster = learned.pair, learned.kernel, learned.speedup
    if as_json:
        speed = {"value": faster.value, "known": faster.known}
        print_json({"learned": True, "reasons": [], "pair": pair, "kernel": name, "speedup": speed})
    else:
        click.echo(printable(f"Remembered as pair {pair}: {name}, {times(faster.value)}."))
    return Exit.DONE


def version(spelling: str) -> tuple[Path, str]:
    """Return the path and the text of a version: a file, or COMMIT:FILE.

    Raises:
        CommandError, UserError: there is no such file or commit.
    """
    path = Path(spelling)
    if path.exists() or ":" not in spelling:
        return path, read_source(path)
    commit, _, file = spelling.partition(":")
    path = Path(file)
    if not path.exists():
        raise wrong_input(f"{file} is not here; its problem is looked for beside it.")
    if commit.startswith("-"):
        raise wrong_input(f"{commit} is no commit.")
    folder = path.absolute().parent
    command = ["git", "-C", str(folder), "cat-file", "blob", f"{commit}:./{path.name}"]
    try:
        output = subprocess.run(command, capture_output=True, timeout=GIT_SECONDS, check=True)
        return path, decode_source(output.stdout)[0]
    except subprocess.CalledProcessError as error:
        why = error.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise wrong_input(f"git has no {spelling}: {why}") from None
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise wrong_input(f"{spelling} cannot be read: {error}") from None
