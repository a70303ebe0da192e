"""Implements ``accelopt bench foreign`` and ``accelopt bench rewrite``: kernels as people have them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_benchmarks.result import end
from accelopt_lsp.cli.failures import Exit, wrong_input
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import out, print_json
from accelopt_lsp.stderr import printable, say

if TYPE_CHECKING:
    from accelopt_benchmarks.foreign.library_files import LibraryFile, LibraryOutcome, Way
    from accelopt_benchmarks.foreign.rewrites import RewriteFile, RewriteOutcome, RewriteSet


@click.command()
@click.option(
    "--python", required=True, metavar="PROGRAM",
    help="The interpreter whose environment has the packages, torch and triton.",
)  # fmt: skip
@click.option(
    "--data", type=click.Path(path_type=Path, exists=True, file_okay=False), multiple=True,
    help="A checkout of a repository of the list; can be given again.",
)  # fmt: skip
@click.option(
    "--set", "chosen_set",
    type=click.Choice(["tuned", "lot", "lot-2", "lot-3", "lot-4", "lot-5", "nki", "nki-lot", "nki-tests"]),
    help="Only this set of files.",
)  # fmt: skip
@click.option(
    "--way", "ways", type=click.Choice(["file", "problem", "record"]), multiple=True, default=("file", "problem"),
    help="Profile the file as it is, after `accelopt problem`, or after `accelopt record` of the file's command in the "
    "list; can be given again.",
)  # fmt: skip
@click.option("--only", multiple=True, metavar="TEXT", help="Only files whose path holds TEXT.")
@click.option("--list", "only_list", is_flag=True, help="Print packages and files, and measure nothing.")
@json_option
def foreign(
    python: str,
    data: tuple[Path, ...],
    chosen_set: str | None,
    ways: tuple[Way, ...],
    only: tuple[str, ...],
    only_list: bool,
    as_json: bool,
) -> int:
    """Profile kernel files of libraries as a new user would. Exit code 1: fewer have a number than the goal."""
    from accelopt_benchmarks.foreign import library_files

    files = [
        f
        for f in library_files.read_library_files()
        if chosen_set in (None, f.set) and (not only or any(text in f.path for text in only))
    ]
    if only_list:
        print_json({"files": files})
        return Exit.DONE
    outcomes = asyncio.run(_profile_library_files(files, ways, data, python))
    table = library_files.rows(outcomes)
    if not as_json:
        _print_library_files(outcomes)
    return end(table, as_json, files=outcomes)


async def _profile_library_files(
    files: list[LibraryFile], ways: Sequence[Way], data: Sequence[Path], python: str
) -> list[LibraryOutcome]:
    from accelopt_benchmarks.foreign import library_files

    folders = [library_files.site_packages(python), *data]
    results: list[LibraryOutcome] = []
    with tempfile.TemporaryDirectory(prefix="accelopt-foreign-") as work:
        for way in ways:
            copies = Path(work) / way
            async with aclosing(
                library_files.profile_library_files(files, way, folders, python, copies)
            ) as outcomes:
                async for one in outcomes:
                    results.append(one)
                    say(
                        f"{len(results)}: {way} {one.file.path}: {one.kernels} of {one.of} kernels have a time"
                    )
    return results


def _print_library_files(outcomes: list[LibraryOutcome]) -> None:
    from rich.table import Table

    table = Table("file", "way", "kernels", "us", "result", "s", "first cause", box=None, pad_edge=False)
    for one in outcomes:
        us = "" if one.us is None else f"{one.us:.3g}"
        counts = f"{one.kernels} of {one.of}"
        table.add_row(
            one.file.path, one.way, counts, us, one.correctness, f"{one.seconds:.0f}", printable(one.trouble)
        )
    out().print(table)


@click.command()
@click.argument("kernels", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--set", "sets", multiple=True, default=("naive", "planted"), show_default=True,
    type=click.Choice(["naive", "planted", "library", "tritonbench", "tritonbench-held-out"]),
    help="The files to search where no KERNELS are given; can be given again.",
)  # fmt: skip
@click.option(
    "--data", type=click.Path(path_type=Path, exists=True, file_okay=False), multiple=True,
    help="A checkout, or a folder of installed packages, that a set needs; can be given again.",
)  # fmt: skip
@click.option("--only", multiple=True, metavar="TEXT", help="Only files whose path holds TEXT.")
@click.option("--budget", default="120", show_default=True, metavar="LIMITS", help="Of each search.")
@click.option(
    "--python", metavar="PROGRAM", help="The interpreter that the kernels need; the setting otherwise."
)
@json_option
def rewrite(
    kernels: tuple[Path, ...],
    sets: tuple[RewriteSet, ...],
    data: tuple[Path, ...],
    only: tuple[str, ...],
    budget: str,
    python: str | None,
    as_json: bool,
) -> int:
    """Search KERNELS or sets of kernels without a model.

    Exit code 1: a planted slowdown was not named or not mended, or too few kernels got a checked suggestion.
    """
    from accelopt_benchmarks.foreign import rewrites

    try:
        listed = rewrites.rewrite_files(sets, data)
    except FileNotFoundError as error:
        raise wrong_input(f"{error}.") from error
    chosen = [rewrites.RewriteFile("own", path) for path in kernels] or listed
    chosen = [file for file in chosen if not only or any(text in str(file.path) for text in only)]
    outcomes = asyncio.run(_search_files(chosen, budget, python))
    table = rewrites.rows(outcomes)
    if not as_json:
        _print_rewrites(outcomes)
    return end(table, as_json, files=outcomes)


async def _search_files(chosen: list[RewriteFile], budget: str, python: str | None) -> list[RewriteOutcome]:
    from accelopt_benchmarks.foreign import rewrites

    results: list[RewriteOutcome] = []
    with tempfile.TemporaryDirectory(prefix="accelopt-rewrite-") as work:
        async with aclosing(rewrites.search_files(chosen, budget, python, Path(work))) as outcomes:
            async for one in outcomes:
                results.append(one)
                say(f"{len(results)} of {len(chosen)}: {one.file}: {_speedup(one) or f'none: {one.why}'}")
    return results


def _speedup(one: RewriteOutcome) -> str:
    where = f" at {one.at}" if one.at else ""
    return "" if one.speedup is None else f"{one.speedup:.2f}x{where}"


def _print_rewrites(outcomes: list[RewriteOutcome]) -> None:
    from rich.table import Table

    table = Table("file", "finding", "speedup", "by", "tried", "s", "", box=None, pad_edge=False)
    for one in outcomes:
        finding = "none" if one.finding is None else one.finding
        seconds = f"{one.seconds:.0f}"
        table.add_row(one.file, finding, _speedup(one), one.rule, str(one.tried), seconds, printable(one.why))
    out().print(table)
