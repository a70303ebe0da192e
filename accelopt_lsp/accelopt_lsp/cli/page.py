"""Generates the page docs/reference/cli.md from the commands themselves.

python -m accelopt_lsp.cli.page > docs/reference/cli.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.resources import files

import click

from accelopt_lsp.cli.main import accelopt


def page() -> str:
    """The whole page, as Markdown."""
    head = files(__package__).joinpath("page_head.md").read_text(encoding="utf-8")
    return head + "\n".join(_sections(accelopt, "accelopt", None))


def _sections(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(command, parent=parent, info_name=name.split()[-1], **command.context_settings)
    context.terminal_width = 100
    yield f"## {name}\n\n```\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            if found is not None:
                yield from _sections(found, f"{name} {child}", context)


if __name__ == "__main__":
    sys.stdout.write(page())
