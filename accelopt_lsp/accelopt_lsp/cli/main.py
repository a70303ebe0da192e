"""Finds the command of an ``accelopt`` call, runs it, and turns its outcome into an exit code."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from accelopt_lsp.cli.failures import CommandError, Exit, as_object, expected_failure, failure_at_files
from accelopt_lsp.cli.terminal import print_json, show_whatever_comes
from accelopt_lsp.stderr import say

#: Where each command is. A module is imported when its command is used or listed; what is heavy it imports
#: itself.
COMMANDS = {
    "profile": "profile:profile",
    "problem": "problem:problem",
    "migrate": "migrate:migrate",
    "record": "record:record",
    "stubs": "stubs:stubs",
    "optimize": "optimize:optimize",
    "verify": "verify:verify",
    "accept": "accept:accept",
    "reject": "accept:reject",
    "learn": "learn:learn",
    "explain": "explain:explain",
    "runs": "runs:runs",
    "memory": "memory:memory",
    "model": "model:model",
    "trust": "trust:trust",
    "replay": "replay:replay",
    "watch": "watch:watch",
    "report": "report:report",
    "hosts": "hosts:hosts",
    "doctor": "doctor:doctor",
    "bench": "bench:bench",
    "demo": "demo:demo",
    "lsp": "lsp:lsp",
    "mcp": "mcp:mcp",
}


class Commands(click.Group):
    """The commands by name, in the order in which a newcomer meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(f"accelopt_lsp.cli.{module}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        import difflib

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else " See `accelopt --help`."
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.command(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="accelopt-lsp", prog_name="accelopt")
def accelopt() -> None:
    """Profile Triton and NKI kernels, and find faster versions of them that are checked.

    Exit codes: 0 done, 1 the answer is no (rejected, wrong, nothing found), 2 wrong usage or input,
    3 the host, the model or the database failed, 70 a mistake of AccelOpt itself, 130 interrupted. Commands
    that report take --json.
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    before_dashes = list(arguments)[: arguments.index("--")] if "--" in arguments else list(arguments)
    as_json = "--json" in before_dashes
    try:
        answer: Any = accelopt.main(list(arguments), prog_name="accelopt", standalone_mode=False)
        return int(answer) if isinstance(answer, int) else Exit.DONE
    except click.UsageError as error:
        if not as_json:
            error.show()
        failure = CommandError(Exit.WRONG_INPUT, error.format_message())
        return _report(failure, as_json, quiet=not as_json)
    except click.ClickException as error:
        return _report(CommandError(Exit.WRONG_INPUT, error.format_message()), as_json)
    except (click.Abort, KeyboardInterrupt):
        say("Interrupted.")
        return _report(CommandError(Exit.INTERRUPTED, "Interrupted."), as_json, quiet=True)
    except (BrokenPipeError, SystemExit):  # click exits on its own only when the reader of a pipe went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return Exit.DONE
    except Exception as error:
        failed = expected_failure(error) or failure_at_files(error, arguments)
        if failed is None:
            raise
        return _report(failed, as_json)


def _report(failure: CommandError, as_json: bool, quiet: bool = False) -> int:
    if not quiet:
        say(f"Error: {failure.message}")
    if as_json:
        print_json(as_object(failure))
    return failure.exit_code


def main() -> NoReturn:
    """Be the console script ``accelopt``. A mistake of ours shows its trace, and has an exit code of its own."""
    show_whatever_comes()
    try:
        code = run(sys.argv[1:])
    except Exception:
        traceback.print_exc()
        say("This is a mistake of AccelOpt. Please report it with the lines above.")
        code = Exit.MISTAKE
    sys.exit(code)


def lsp_main() -> NoReturn:
    """Be the console script ``accelopt-lsp``: the server, for the configuration of an editor."""
    sys.exit(run(["lsp", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
