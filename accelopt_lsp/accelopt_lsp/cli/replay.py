"""Implements ``accelopt replay``: repeats a check or a measurement from its receipt and compares the results."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from accelopt_lsp.cli.failures import CommandError, Exit, wrong_input
from accelopt_lsp.cli.options import host_option, json_option
from accelopt_lsp.cli.terminal import out, print_json
from accelopt_lsp.resources import memory_with, open_host
from accelopt_lsp.stderr import printable

if TYPE_CHECKING:
    from accelopt_lsp.settings.load import Settings
    from accelopt_profiling.measurement import KernelMeasurement
    from accelopt_profiling.receipt import Receipt


@dataclass(frozen=True)
class Difference:
    """What came out differently: the name of a quantity, and what the receipt and the replay say."""

    name: str
    then: Any
    now: Any


@dataclass(frozen=True)
class Replayed:
    receipt: str
    kind: str
    agrees: bool
    differences: list[Difference] = field(default_factory=list)


@click.command()
@click.argument("receipt_id", metavar="RECEIPT")
@host_option
@json_option
def replay(receipt_id: str, host: str | None, as_json: bool) -> int:
    """Run a check or profile again from its RECEIPT. Exit code 1: it does not agree.

    Of a profile, counts and compiler facts must be the same and intervals of times must overlap. Of a check by the
    gate, the same seeds must draw the same inputs, and the verdict, its reasons and each case's outcome must be the
    same.
    """
    opened, settings = memory_with(receipt_id, {"host": host}, read_only=True)
    with opened as memory:
        receipt = memory.receipt(receipt_id)
    if receipt is None:
        raise CommandError(Exit.NO, f"The memory has no receipt {receipt_id!r}.")
    if receipt.kind not in ("profile", "gate"):
        raise wrong_input(f"{receipt_id} is the receipt of a {receipt.kind}, which nothing can run again.")
    again = _profile_again if receipt.kind == "profile" else _check_again
    replayed = asyncio.run(again(settings, receipt))
    if as_json:
        print_json(replayed)
    else:
        console = out()
        console.print("agrees" if replayed.agrees else "does not agree")
        for difference in replayed.differences:
            console.print(
                printable(f"  {difference.name}: {difference.then} in the receipt, {difference.now} now")
            )
    return Exit.DONE if replayed.agrees else Exit.NO


async def _profile_again(settings: Settings, receipt: Receipt) -> Replayed:
    from accelopt_profiling.profiler import profile, request_of

    try:
        request, then = request_of(receipt, settings.job_limits)
    except (ValueError, KeyError) as error:
        raise _incomplete(receipt, error) from None
    host = open_host(settings)
    now: KernelMeasurement | None = None
    try:
        async with aclosing(profile(host, request)) as growing:
            async for measurement in growing:
                now = next((k for k in measurement.kernels if k.name == then.name), now)
    finally:
        await host.close()
    if now is None:
        raise wrong_input(f"The receipt {receipt.id} holds no kernel {then.name}.")
    differences = compare(then, now)
    return Replayed(receipt.id, receipt.kind, not differences, differences)


async def _check_again(settings: Settings, receipt: Receipt) -> Replayed:
    from accelopt_profiling.gate.gate import check
    from accelopt_profiling.gate.receipts import differences, request_of

    try:
        request = request_of(receipt)
    except (ValueError, KeyError) as error:
        raise _incomplete(receipt, error) from None
    host = open_host(settings)
    try:
        _, now = await check(host, request)
    finally:
        await host.close()
    found = [Difference(name, then, again) for name, then, again in differences(receipt, now)]
    return Replayed(receipt.id, receipt.kind, not found, found)


def _incomplete(receipt: Receipt, error: Exception) -> CommandError:
    what = f"it holds no {error}" if isinstance(error, KeyError) else str(error)
    return wrong_input(
        f"The receipt {receipt.id} is not complete ({what}), as an older version wrote them; nothing was run. "
        "Profile or verify the file again."
    )


def compare(then: KernelMeasurement, now: KernelMeasurement) -> list[Difference]:
    """Return what two measurements of the same kernel disagree about."""
    from accelopt_profiling.quantity import Known

    found: list[Difference] = []
    if then.correctness.status != now.correctness.status:
        found.append(Difference("correctness", then.correctness.status, now.correctness.status))
    old, new = then.latency, now.latency
    faults = [f"{m.fault.code} (line {m.fault.line})" if m.fault else "none" for m in (then, now)]
    if faults[0] != faults[1]:
        found.append(Difference("error", *faults))
    elif old.known is not new.known:
        found.append(Difference("latency is known", str(old.known), str(new.known)))
    elif not _overlap((old.low_us, old.us, old.high_us), (new.low_us, new.us, new.high_us)):
        found.append(Difference("latency in us", old.us, new.us))
    exact = {Known.EXECUTED, Known.COMPILED}
    for name in sorted(then.quantities.keys() | now.quantities.keys()):
        a, b = then.quantities.get(name), now.quantities.get(name)
        if (a and a.known in exact) or (b and b.known in exact):
            before, after = (a.value if a else None), (b.value if b else None)
            if before != after:
                found.append(Difference(name, before, after))
    return found


def _overlap(a: tuple[float | None, ...], b: tuple[float | None, ...]) -> bool:
    known_a, known_b = [v for v in a if v is not None], [v for v in b if v is not None]
    if not known_a or not known_b:
        return not known_a and not known_b
    return min(known_a) <= max(known_b) and min(known_b) <= max(known_a)
