"""Repeat a check or a measurement from its receipt, and compare the results."""

from __future__ import annotations

from contextlib import aclosing

from accelopt_lsp.errors import HostUnavailableError, UserError
from accelopt_lsp.service.host_profiles import HostProfiles
from accelopt_lsp.service.protocol import Difference, Replayed
from accelopt_lsp.settings.load import Settings
from accelopt_profiling.gate import receipts
from accelopt_profiling.gate.gate import check
from accelopt_profiling.hosts.host import Host, HostUnreachableError
from accelopt_profiling.jobs import Limits
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.profiler import profile, request_of
from accelopt_profiling.quantity import Known
from accelopt_profiling.receipt import Receipt


async def replay(receipt: Receipt, settings: Settings, profiles: HostProfiles) -> Replayed:
    """``Service.replay``."""
    if receipt.kind not in ("profile", "gate"):
        raise UserError(f"{receipt.id} is the receipt of a {receipt.kind}, which nothing can run again.")
    try:
        host = await profiles.connected(settings)
        if receipt.kind == "profile":
            differences = await _profile_again(receipt, settings.job_limits, host)
        else:
            _, now = await check(host, receipts.request_of(receipt))
            differences = [Difference(*parts) for parts in receipts.differences(receipt, now)]
    except HostUnreachableError as error:
        raise HostUnavailableError(str(error)) from None
    except (ValueError, KeyError) as error:
        what = f"it holds no {error}" if isinstance(error, KeyError) else str(error)
        raise UserError(
            f"The receipt {receipt.id} is not complete ({what}), as an older version wrote them; nothing was run. "
            "Profile or verify the file again."
        ) from None
    return Replayed(receipt.id, receipt.kind, not differences, differences)


async def _profile_again(receipt: Receipt, limits: Limits, host: Host) -> list[Difference]:
    request, then = request_of(receipt, limits)
    now: KernelMeasurement | None = None
    async with aclosing(profile(host, request)) as growing:
        async for measurement in growing:
            now = next((k for k in measurement.kernels if k.name == then.name), now)
    if now is None:
        raise UserError(f"The receipt {receipt.id} holds no kernel {then.name}.")
    return compare(then, now)


def compare(then: KernelMeasurement, now: KernelMeasurement) -> list[Difference]:
    """Return what two measurements of the same kernel disagree about."""
    changes: list[Difference] = []
    if then.correctness.status != now.correctness.status:
        changes.append(Difference("correctness", then.correctness.status, now.correctness.status))
    old, new = then.latency, now.latency
    faults = [f"{m.fault.code} (line {m.fault.line})" if m.fault else "none" for m in (then, now)]
    if faults[0] != faults[1]:
        changes.append(Difference("error", *faults))
    elif old.known is not new.known:
        changes.append(Difference("latency is known", str(old.known), str(new.known)))
    elif not _overlap((old.low_us, old.us, old.high_us), (new.low_us, new.us, new.high_us)):
        changes.append(Difference("latency in us", old.us, new.us))
    exact = {Known.EXECUTED, Known.COMPILED}
    for name in sorted(then.quantities.keys() | now.quantities.keys()):
        a, b = then.quantities.get(name), now.quantities.get(name)
        if (a and a.known in exact) or (b and b.known in exact):
            before, after = (a.value if a else None), (b.value if b else None)
            if before != after:
                changes.append(Difference(name, before, after))
    return changes


def _overlap(a: tuple[float | None, ...], b: tuple[float | None, ...]) -> bool:
    known_a, known_b = [v for v in a if v is not None], [v for v in b if v is not None]
    if not known_a or not known_b:
        return not known_a and not known_b
    return min(known_a) <= max(known_b) and min(known_b) <= max(known_a)
