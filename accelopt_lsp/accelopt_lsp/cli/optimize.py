"""Implements ``accelopt optimize``: searches for faster versions that pass the gate."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accelopt_lsp.cli.failures import Exit
from accelopt_lsp.cli.options import (
    host_option,
    isolation_option,
    json_option,
    kernel_file,
    problem_option,
    search_options,
    search_settings,
    target_option,
)
from accelopt_lsp.cli.surface import Terminal, call_service
from accelopt_lsp.cli.terminal import err, out, print_json
from accelopt_lsp.resources import read_file
from accelopt_lsp.search_plan import budget_of
from accelopt_lsp.stderr import say

if TYPE_CHECKING:
    from types import FrameType

    from accelopt_lsp.search_outcome import SearchOutcome
    from accelopt_lsp.service.protocol import FileRequest, SearchRequest, Service
    from accelopt_lsp.settings.load import Settings


@click.command()
@kernel_file()
@problem_option
@click.option("--kernel", metavar="NAME", help="Only this kernel.")
@target_option
@host_option
@isolation_option
@click.option("--no-model", is_flag=True, help="Ask no model, whatever the settings say.")
@click.option(
    "--budget",
    metavar="LIMITS",
    help="Such as 60, 5m, or candidates=60,minutes=5,tokens=100000. The search ends with the first that is used up.",
)
@click.option(
    "--resume", is_flag=True, help="Take over what earlier searches paid for under the same conditions."
)
@search_options
@click.option(
    "--instructions",
    default="",
    metavar="TEXT",
    help="A sentence for the model: what to try, or to leave alone.",
)
@json_option
def optimize(
    file: Path,
    problem: str | None,
    kernel: str | None,
    target: str | None,
    host: str | None,
    require_isolation: bool | None,
    no_model: bool,
    budget: str | None,
    resume: bool,
    instructions: str,
    as_json: bool,
    **choices: Any,
) -> int:
    """Search for faster versions of the kernels of FILE. Only what passes the gate is printed.

    A file without a problem is searched with inferred arguments; the original is then what versions are compared with.

    When the time of the budget is up, or at Ctrl-C or SIGTERM, it ends within 15 seconds with what it has.

    Exit code 1: nothing faster was found. 2: no kernel could be measured. 3: the host was lost. 130:
    interrupted.
    """
    settings = search_settings(
        file, {"problem": problem, "host": host, "require_isolation": require_isolation}, **choices
    )
    from accelopt_lsp.search_outcome import SearchOutcome, continuing, not_checked
    from accelopt_lsp.service.protocol import SearchRequest

    limits = budget_of(settings, budget)
    kernel_text = read_file(file, settings, target, kernels=[kernel] if kernel else [])
    asks = not no_model and "model" in settings.search.sources.split(",")
    if asks and not as_json and sys.stdin.isatty():
        _ask_consent(settings, file)
    request = SearchRequest(instructions, resume, ask_model=not no_model, budget=limits)
    search = SearchOutcome(say)
    surface = Terminal("Nothing of this search will be remembered.")
    call_service(
        lambda service: _follow(service, kernel_text, kernel=kernel, request=request, search=search), surface
    )
    end, suggestions = search.end, search.best_first
    again = continuing(sys.argv[1:])
    if as_json:
        print_json(search.as_object(str(file), again))
    else:
        from accelopt_lsp.cli.tables import print_suggestion

        console = out()
        for suggestion in suggestions:
            print_suggestion(console, suggestion)
        if suggestions:
            console.print(f"Take one with `accelopt accept ID`, e.g. `accelopt accept {suggestions[0].id}`.")
    if search.record.tried or not search.record.skipped:
        tried = f"{search.record.tried} candidate{'' if search.record.tried == 1 else 's'} tried; "
        spent = end.usage.candidates >= limits.candidates  # then the reason says how many
        say(f"{'' if spent else tried}{end.reason}")
    for line in not_checked(end.unchecked):
        say(line)
    if end.ending != "done":
        say(f"To continue: {again}")
    if end.calls:
        from accelopt_lsp.cli.tables import print_ledger

        print_ledger(err(), end.calls)
    if end.ending in ("stopped", "failed"):
        return Exit.INTERRUPTED if end.ending == "stopped" else Exit.UNAVAILABLE
    if not search.record.baselines and end.ending == "done":
        return Exit.WRONG_INPUT
    return Exit.DONE if suggestions else Exit.NO


async def _follow(
    service: Service, file: FileRequest, kernel: str | None, request: SearchRequest, search: SearchOutcome
) -> None:
    def stop() -> asyncio.Task[None]:
        return asyncio.ensure_future(service.stop(request.job, "interrupted"))

    with stopped_by_signals(stop):
        await search.follow(service, file, kernel, request)


@contextmanager
def stopped_by_signals(stop: Callable[[], object]) -> Iterator[None]:
    """Have Ctrl-C and SIGTERM call ``stop`` while the block runs; a second one ends the command at once."""
    loop = asyncio.get_running_loop()
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    numbers = [n for n, handler in before.items() if handler is not signal.SIG_IGN]

    def end_at_once_next(number: int, frame: FrameType | None) -> None:
        for n in numbers:
            signal.signal(n, signal.default_int_handler)

    for n in numbers:
        # the loop is told through a descriptor, which wakes it also where the signal meets another thread
        loop.add_signal_handler(n, stop)
        signal.signal(n, end_at_once_next)
    try:
        yield
    finally:
        for n in numbers:
            loop.remove_signal_handler(n)
            signal.signal(n, before[n])


def _ask_consent(settings: Settings, file: Path) -> None:
    """Ask the person for the agreement that is missing, if one is, before a model is asked about ``file``."""
    from accelopt_lsp.models import configured_team, consent_folder, resolve_team

    agreed, why_not = resolve_team(settings, file)
    team = configured_team(settings)
    if agreed is not None or not why_not or team is None:
        return
    from accelopt_agent.model.consent import ConsentStore, required_consent
    from accelopt_lsp.cli.model import print_disclosure

    workspace = consent_folder(settings, file)
    print_disclosure(team, workspace)
    if not click.confirm("Send this from now on?", default=False, err=True):
        return
    try:
        ConsentStore().give(required_consent(team.planner, workspace))
    except OSError as error:
        say(f"Your agreement cannot be kept: {error.strerror}.")
