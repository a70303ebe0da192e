"""Implements ``accelopt memory``: shows, searches, exports and imports the remembered pairs."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accelopt_lsp.cli.failures import CommandError, Exit, wrong_input
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import out, print_json
from accelopt_lsp.resources import memory_path, open_memory, settings_for, settings_with
from accelopt_lsp.stderr import printable, say
from accelopt_profiling.source_text import source_lines

if TYPE_CHECKING:
    from accelopt_lsp.settings.load import Settings
    from accelopt_memory.memory import Memory
    from accelopt_memory.records import RecordKind


@click.group()
def memory() -> None:
    """Look at and keep what was learned."""


@memory.command()
@json_option
def path(as_json: bool) -> None:
    """Print where the database is. Nothing is created."""
    where = memory_path()
    if as_json:
        print_json({"path": str(where)})
    else:
        click.echo(str(where))


@memory.command()
@json_option
def stats(as_json: bool) -> None:
    """Count the entries."""
    with open_memory(read_only=True) as opened:
        counts = opened.stats()
    if as_json:
        print_json(counts)
        return
    from rich.table import Table

    table = Table("", "", show_header=False, box=None)
    for name, value in vars(counts).items():
        table.add_row(name, printable(str(value)))
    out().print(table)


@memory.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000))
@json_option
def search(words: tuple[str, ...], limit: int, as_json: bool) -> int:
    """Find entries that hold every one of WORDS."""
    with open_memory(read_only=True) as opened:
        hits = opened.search(" ".join(words), limit)
    if as_json:
        print_json({"query": " ".join(words), "results": hits})
    elif hits:
        from rich.table import Table

        table = Table("kind", "id", "kernel", "summary", "saved", box=None)
        for hit in hits:
            table.add_row(
                hit.kind, hit.id, printable(hit.kernel), printable(hit.summary), hit.created[:19] + "Z"
            )
        out().print(table)
    else:
        say("Nothing found.")
    return Exit.DONE if hits else Exit.NO


@memory.command()
@click.argument("entry_id", metavar="[ID]", default="")
@json_option
def show(entry_id: str, as_json: bool) -> None:
    """Show one entry, or without ID what was learned in sum.

    The first four or more characters of an ID are enough where they are unique.
    """
    if not entry_id:
        _show_learned(as_json)
        return
    with open_memory(settings_with(entry_id), read_only=True) as opened:
        kind, full = _the_one(opened, entry_id)
        record = opened.entry(kind, full)
        answer: dict[str, Any] = {"kind": kind, "id": full, "entry": record}
        if kind == "run":
            answer["events"] = opened.run_log.events(full)
    if as_json:
        print_json(answer)
        return
    import json

    from accelopt_profiling.plain import to_plain

    fields = to_plain(answer["entry"])
    if kind == "suggestion":
        fields = {**fields.pop("body"), **fields}
    for name, value in fields.items():
        if name in ("features", "slow_text", "fast_text", "base_text", "text", "gate", "diff"):
            continue  # --json has them
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        click.echo(f"{name}: {printable(text)}")
    if kind == "pair" and record is not None:
        click.echo(printable(_diff(record.slow_text, record.fast_text)))
    click.echo(printable(fields.get("diff", "")), nl=False)
    for event in answer.get("events", []):
        click.echo(printable(f"{event.number:5} {event.kind} {json.dumps(event.data, ensure_ascii=False)}"))


def _show_learned(as_json: bool) -> None:
    with open_memory(read_only=True) as opened:
        items = opened.outcomes.summaries()
    if as_json:
        print_json({"items": items})
        return
    if not items:
        say("Nothing was tried yet.")
        return
    from rich.table import Table

    columns = ("item", "dialect", "kernels", "tries", "failed", "accepted", "undone", "expected time")
    table = Table(*columns, box=None)
    for row in items:
        counts = (row.tasks, row.tries, row.failed, row.accepted, row.undone)
        table.add_row(printable(row.item), row.dialect, *map(str, counts), f"{row.expected:.2f}x")
    out().print(table)


@memory.command()
@click.argument("entry_ids", metavar="ID...", nargs=-1, required=True)
@json_option
def forget(entry_ids: tuple[str, ...], as_json: bool) -> None:
    """Delete entries for good, with evidence only they have."""
    forgotten: list[dict[str, str]] = []
    with ExitStack() as stack:
        memories = [
            stack.enter_context(open_memory(settings_with(entry_id), to_keep=True)) for entry_id in entry_ids
        ]
        entries = [(m, *_the_one(m, entry_id)) for m, entry_id in zip(memories, entry_ids, strict=True)]
        for opened, kind, full in entries:
            opened.forget(full)
            forgotten.append({"kind": kind, "id": full})
    if as_json:
        print_json({"forgotten": forgotten})
    else:
        for entry in forgotten:
            click.echo(f"Forgot {entry['kind']} {entry['id']}.")


@memory.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--no-sources", is_flag=True, help="Leave out every line of a kernel, and with them the receipts."
)
@json_option
def export(file: Path, no_sources: bool, as_json: bool) -> None:
    """Write all entries to FILE as JSON lines."""
    from accelopt_memory.export_file import export_memory

    with open_memory(read_only=True) as opened:
        try:
            count = export_memory(opened, file, sources=not no_sources)
        except OSError as error:
            raise wrong_input(f"{file} cannot be written: {error.strerror}.") from None
    if as_json:
        print_json({"path": str(file), "records": count})
    else:
        click.echo(f"Wrote {count} records to {file}.")


@memory.command(name="import")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@json_option
def import_(file: Path, as_json: bool) -> None:
    """Add the entries of an export; on a wrong line none.

    FILE may also be an experience list of AccelOpt, or the folder of a FlashInfer-Bench dataset. Of these a pair is
    made of each change to one kernel; the times that they state are shown and not believed.
    """
    from accelopt_memory.export_file import import_file, is_export

    left_out: tuple[str, ...] = ()
    settings = settings_for(Path.cwd())
    with open_memory(settings, to_keep=True) as opened:
        try:
            if is_export(file):
                added = import_file(opened, file)
            else:
                added, left_out = _add_foreign(opened, file, settings)
        except OSError as error:
            raise wrong_input(f"{file} cannot be read: {error.strerror}.") from None
    if as_json:
        print_json({"path": str(file), "added": added, "left_out": left_out})
        return
    for line in left_out:
        say(f"Left out: {line}")
    click.echo("Added " + ", ".join(f"{count} {kind}s" for kind, count in added.items()) + ".")


def _add_foreign(opened: Memory, path: Path, settings: Settings) -> tuple[dict[str, int], tuple[str, ...]]:
    from accelopt_agent.suggestions.foreign_pairs import ForeignFormatError, read_foreign
    from accelopt_memory.export_masks import holds_secret

    try:
        foreign = read_foreign(path, lambda kernel: settings.targets([kernel])[kernel.dialect])
    except ForeignFormatError as error:
        raise wrong_input(f"{error}.") from None
    before, left_out = opened.stats().pairs, list(foreign.left_out)
    with opened.transaction():
        for pair in foreign.pairs:
            if holds_secret(pair.slow_text + pair.fast_text):
                left_out.append(f"{pair.summary}: a source looks as if it held a secret")
            else:
                opened.add_pair(pair)
    return {"pair": opened.stats().pairs - before}, tuple(left_out)


@memory.command()
@click.argument("kernels", nargs=-1)
@click.option("--seeds", default=10, show_default=True, type=click.IntRange(1, 1000))
@click.option(
    "--cache", type=click.Path(path_type=Path, file_okay=False), help="Keep the costs of the versions here."
)
@json_option
def eval(kernels: tuple[str, ...], seeds: int, cache: Path | None, as_json: bool) -> int:
    """Measure whether what is learned on kernels helps on others.

    Each of KERNELS (NKIBench's and the Triton examples, or those named) is searched knowing some of the others, in
    the catalogue's order, a random one and the learned one, with half of the rules withheld, and by simulated
    proposers that are told of the memory by several policies. The versions and their costs are found out first, which
    takes some minutes. No memory of yours is read, and no model is asked. From a checkout only.

    Exit code 1: a goal is missed.
    """
    from accelopt_lsp.cli.bench import own_module

    evaluation, result = (own_module(name, "memory eval") for name in ("memory.evaluation_run", "result"))
    rows = asyncio.run(evaluation.measure_evaluation(kernels, seeds, cache))
    return int(result.end(rows, as_json))


@memory.command()
@click.option(
    "-o", "--output", default="accelopt-memory.html", show_default=True, type=click.Path(path_type=Path)
)
@json_option
def report(output: Path, as_json: bool) -> None:
    """Write what was learned as one HTML file.

    By operator and target, by rule and change, with the learning curve."""
    from accelopt_lsp.cli.report import memory_page
    from accelopt_memory.outcomes import learning_curve

    with open_memory(read_only=True) as opened:
        pairs, items = opened.pairs(checked=True), opened.outcomes.summaries()
        curve = learning_curve(opened.outcomes.all())
    try:
        output.write_text(memory_page(pairs, items, curve), encoding="utf-8")
    except OSError as error:
        raise wrong_input(f"{output} cannot be written: {error.strerror}.") from None
    if as_json:
        print_json({"path": str(output), "pairs": len(pairs), "kernels": len(curve)})
    else:
        click.echo(f"Wrote {output}.")


@memory.command()
@click.option(
    "--megabytes", type=click.IntRange(1), default=512, show_default=True, help="What the memory may hold."
)
@json_option
def tidy(megabytes: int, as_json: bool) -> None:
    """Forget what stopped helping or exceeds the size.

    Each search ends with it.

    An edit that helped on none of the last six kernels that it was tried on is withdrawn, or, where a person accepted
    it, shown and no longer applied. For want of room go, the oldest first: steps of ended searches, suggestions that
    nobody decided, traps, outcomes, pairs that nobody accepted, and evidence that no pair has.
    """
    from accelopt_memory.forgetting import tidy as forget_stale

    with open_memory(to_keep=True) as opened:
        gone = forget_stale(opened, megabytes << 20)
    if as_json:
        print_json(gone)
        return
    click.echo(f"Withdrew {gone.withdrawn} pairs; {gone.examples} more are no longer applied.")
    for table, count in gone.deleted.items():
        click.echo(f"Deleted {count} {table.replace('_', ' ')}.")


@memory.command()
@json_option
def repair(as_json: bool) -> int:
    """Salvage what can be read of a damaged database. The damaged file is kept beside the new one."""
    from accelopt_memory.repair import repair as salvage

    where = memory_path()
    try:
        report = salvage(where)
    except FileNotFoundError:
        raise CommandError(Exit.NO, f"There is no file {where}.") from None
    except OSError as error:
        raise CommandError(Exit.UNAVAILABLE, f"{where} cannot be replaced: {error.strerror}.") from None
    if as_json:
        print_json(report)
        return Exit.DONE
    rows = ", ".join(f"{count} {table}" for table, count in report.kept.items() if count)
    lost = ", ".join(f"{count} {table}" for table, count in report.lost.items())
    click.echo(f"Salvaged {rows or 'nothing'}. The damaged file is {report.moved_to}.")
    if lost:
        click.echo(f"Could not be read: {lost}.")
    return Exit.DONE


@memory.command(name="set-aside")
@json_option
def set_aside_(as_json: bool) -> int:
    """Move a database that cannot be read out of the way.

    The next command begins a new one."""
    from accelopt_memory.memory import set_aside

    where = memory_path()
    try:
        moved = set_aside(where)
    except OSError as error:
        raise CommandError(Exit.UNAVAILABLE, f"{where} cannot be moved: {error.strerror}.") from None
    if as_json:
        print_json({"path": str(where), "moved_to": str(moved) if moved else None})
    else:
        click.echo(f"Moved to {moved}." if moved else f"There is no file {where}.")
    return Exit.DONE if moved else Exit.NO


def _the_one(opened: Memory, entry_id: str) -> tuple[RecordKind, str]:
    """Return the entry that an id or its beginning means. Raises CommandError: none, or several."""
    entries = opened.entries(entry_id)
    exact = [entry for entry in entries if entry[1] == entry_id]
    if len(exact or entries) == 1:
        return (exact or entries)[0]
    if not entries:
        few = " Give at least four characters." if len(entry_id) < 4 else ""
        raise CommandError(Exit.NO, f"The memory has no entry {entry_id!r}.{few}")
    listed = ", ".join(f"{kind} {full}" for kind, full in entries[:5])
    raise wrong_input(f"{entry_id!r} could mean {listed}{' and more' if len(entries) > 5 else ''}.")


def _diff(slow: str, fast: str) -> str:
    import difflib

    lines = difflib.unified_diff(source_lines(slow), source_lines(fast), "slow", "fast", lineterm="")
    return "\n".join(lines)
