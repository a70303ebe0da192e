"""Implements ``accelopt learn``: a person's own slow and fast version, through the gate and into the memory."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.failures import CommandError, Exit, wrong_input
from accelopt_lsp.cli.optimize import budget_of, search_request
from accelopt_lsp.cli.options import host_option, isolation_option, json_option, problem_option, target_option
from accelopt_lsp.cli.terminal import err, print_json
from accelopt_lsp.resources import open_host, open_memory, read_source, settings_for
from accelopt_lsp.stderr import printable
from accelopt_profiling.source_text import decode_source

if TYPE_CHECKING:
    from accelopt_agent.request import OptimizeRequest
    from accelopt_agent.suggestions.suggestion import Suggestion
    from accelopt_lsp.settings.load import Settings
    from accelopt_memory.memory import Memory

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
    from accelopt_agent.learn import NotLearnedError, changed_kernel
    from accelopt_lsp.features.wording import times

    path, before = version(slow)
    _, after = version(fast)
    flags = {"problem": problem, "host": host, "require_isolation": require_isolation}
    settings = settings_for(path, flags)
    try:
        name = changed_kernel(before, after, kernel)
        request = search_request(path, settings, name, target, budget_of(settings, None), before)
        with open_memory(settings, to_keep=True) as memory:
            what = summary.strip() or f"A change to {name} by a person."
            suggestion, pair = asyncio.run(_learn(settings, request, after, memory, what))
    except NotLearnedError as error:
        if not as_json:
            raise CommandError(Exit.NO, str(error)) from None
        print_json({"learned": False, "reasons": [{"code": error.code, "message": str(error)}], "pair": None})
        return Exit.NO
    speed = {"value": suggestion.speedup.value, "known": suggestion.speedup.known}
    if as_json:
        print_json({"learned": True, "reasons": [], "pair": pair, "kernel": name, "speedup": speed})
    else:
        click.echo(printable(f"Remembered as pair {pair}: {name}, {times(suggestion.speedup.value)}."))
    return Exit.DONE


async def _learn(
    settings: Settings, request: OptimizeRequest, fast: str, memory: Memory, summary: str
) -> tuple[Suggestion, str]:
    from accelopt_agent.evaluation.evaluators import CostUnavailableError
    from accelopt_agent.evaluation.host_evaluation import HostCost, HostGate
    from accelopt_agent.learn import NotLearnedError, accept_learned, learned_suggestion

    host = open_host(settings)
    try:
        with err().status(f"checking {printable(request.path.name)} on {host.name} ..."):
            suggestion = await learned_suggestion(
                request, fast, HostCost(host, request), HostGate(host, request), memory, host.name, summary
            )
    except CostUnavailableError as error:
        raise NotLearnedError(error.code, str(error)) from None
    finally:
        await host.close()
    return suggestion, accept_learned(memory, suggestion)


def version(named: str) -> tuple[Path, str]:
    """Return the path and the text of a version: a file, or COMMIT:FILE.

    Raises:
        CommandError, UserError: there is no such file or commit.
    """
    path = Path(named)
    if path.exists() or ":" not in named:
        return path, read_source(path)
    commit, _, file = named.partition(":")
    path = Path(file)
    if not path.exists():
        raise wrong_input(f"{file} is not here; its problem is looked for beside it.")
    if commit.startswith("-"):
        raise wrong_input(f"{commit} is no commit.")
    folder = path.absolute().parent
    command = ["git", "-C", str(folder), "cat-file", "blob", f"{commit}:./{path.name}"]
    try:
        shown = subprocess.run(command, capture_output=True, timeout=GIT_SECONDS, check=True)
        return path, decode_source(shown.stdout)[0]
    except subprocess.CalledProcessError as error:
        why = error.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise wrong_input(f"git has no {named}: {why}") from None
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise wrong_input(f"{named} cannot be read: {error}") from None
