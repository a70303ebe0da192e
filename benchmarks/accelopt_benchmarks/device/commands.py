"""Implements ``accelopt bench device``: everything that needs a GPU."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from accelopt_benchmarks.device import PARTS as DEVICE_PARTS
from accelopt_lsp.cli.failures import Exit, wrong_input
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import print_json
from accelopt_lsp.stderr import say


@click.command()
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(DEVICE_PARTS),
    help="Only this part; can be given again.",
)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("device-results"), show_default=True,
    help="Where each part's results go, as PART.json, and the page of all of them, as device.md.",
)  # fmt: skip
@click.option(
    "--seconds",
    type=click.FloatRange(10, 36000),
    default=540.0,
    show_default=True,
    help="For all parts together.",
)
@click.option(
    "--page", "only_page", is_flag=True, help="Measure nothing: write the page of what lies below --out."
)
@json_option
def device(
    parts: tuple[str, ...],
    out: Path,
    seconds: float,
    only_page: bool,
    as_json: bool,
) -> int:
    """Measure on this machine's GPU. Exit code 1: a goal is missed, or something was not measured."""
    from accelopt_benchmarks.device.measuring import measure, page, read_found

    try:
        if not only_page:
            asyncio.run(measure(list(parts or DEVICE_PARTS), out, seconds, say))
        results = read_found(out)
        if not results:
            raise wrong_input(f"{out} holds no results of parts.")
        text = page(results)
        (out / "device.md").write_text(text, encoding="utf-8")
    except ValueError as error:
        raise wrong_input(f"{error}.") from None
    except OSError as error:
        raise wrong_input(f"{error.filename or out} cannot be written: {error.strerror or error}.") from None
    met = all(
        one.rows and all(row.met is not False and row.value is not None for row in one.rows)
        for one in results
    )
    if as_json:
        print_json({"met": met, "parts": results})
    else:
        click.echo(text)
    return Exit.DONE if met else Exit.NO
