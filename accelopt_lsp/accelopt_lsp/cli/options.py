"""Defines the options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

json_option: Callable[[F], F] = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on standard output."
)
problem_option: Callable[[F], F] = click.option(
    "--problem", metavar="FILE", help="The problem: inputs, a reference and tolerances."
)
target_option: Callable[[F], F] = click.option(
    "--target", metavar="NAME", help="The hardware to state costs for, such as h100 or trn2."
)
host_option: Callable[[F], F] = click.option(
    "--host", metavar="NAME", help="Where to run: local, or a [hosts.NAME] of the settings."
)

isolation_option: Callable[[F], F] = click.option(
    "--require-isolation", is_flag=True, default=None,
    help="Run nothing on a host that does not isolate kernels completely.",
)  # fmt: skip


def kernel_file(name: str = "file") -> Callable[[F], F]:
    """Return an argument that is an existing file."""
    return click.argument(name, type=click.Path(exists=True, dir_okay=False, path_type=Path))
