"""Measures part ``tricks``: timing tricks that need a device, each beside an honest negative control."""

from __future__ import annotations

from dataclasses import dataclass

from accelopt_benchmarks.device.corpus import LIMITS, CorpusKernel, Trick, kernels, named, tricks
from accelopt_benchmarks.device.part_result import PartResult, Table, attempt, microseconds
from accelopt_benchmarks.device.session import DeviceSession
from accelopt_benchmarks.result import GoalResult, not_measured
from accelopt_profiling.gate.reading.read import read
from accelopt_profiling.timing.session import TimingSession
from accelopt_profiling.timing.timing_job import time_on

#: A trick has gained nothing when its time is at least this share of its honest twin's.
GAINED_NOTHING = 0.9


@dataclass(frozen=True)
class Caught:
    """Whether a trick got nowhere, and by what."""

    caught: bool
    how: str


async def tricks_on_device(place: DeviceSession) -> PartResult:
    """Time every trick, its twin and the plain kernel, and judge whether the trick got anywhere."""
    table = Table("Tricks on the device", ["trick", "attack (us)", "twin (us)", "plain (us)", "caught", "by what",
                                           "read before it runs", "twin accepted"])  # fmt: skip
    lacks = list(place.trouble)
    if not place.usable:
        return PartResult("tricks", [not_measured("device tricks caught", "100 %", "no device")], [], lacks)
    plain = await attempt(_timed(place, named(kernels(), "scale")), place.left(120))
    caught = accepted = total = 0
    for trick in tricks():
        attack = await attempt(_timed(place, trick.attack), place.left(120))
        honest = await attempt(_timed(place, trick.honest), place.left(120))
        verdict, wrong = judge_attack(attack, honest, plain), wrong_with(honest)
        total, caught, accepted = total + 1, caught + verdict.caught, accepted + (not wrong)
        table.rows.append([
            trick.name, _us(attack), _us(honest), _us(plain), "yes" if verdict.caught else "NO", verdict.how,
            "; ".join(_read(trick)) or "nothing", f"NO: {wrong}" if wrong else "yes",
        ])  # fmt: skip
    rows = [
        GoalResult("device tricks caught by timing", "100 %", 100 * caught / max(1, total), "%", caught == total > 0,
            f"of {total}"),
        GoalResult("their honest twins timed and right", "100 %", 100 * accepted / max(1, total), "%",
            accepted == total > 0, f"of {total}"),
    ]  # fmt: skip
    return PartResult("tricks", rows, [table], lacks)


async def _timed(place: DeviceSession, subject: CorpusKernel) -> TimingSession:
    source, own_kernels, ref = subject.profile_inputs()
    return await time_on(place.host, source, own_kernels, ref, limits=LIMITS)


def judge_attack(
    attack: TimingSession | str, honest: TimingSession | str, plain: TimingSession | str
) -> Caught:
    """Refused, wrong when its timed runs are looked at, or no faster than the honest twin or the plain kernel."""
    if isinstance(attack, str):
        return Caught("kind of tensor of its own" in attack, attack)
    if attack.checked is not None and attack.checked.wrong:
        return Caught(True, f"outputs of timed runs: {attack.checked.wrong}")
    others = [s.call.us for s in (honest, plain) if isinstance(s, TimingSession) and s.call.us]
    if others and attack.call.us and attack.call.us >= GAINED_NOTHING * min(others):
        notes = [note for note in attack.notes if note.startswith("Work goes on")]
        return Caught(True, notes[0] if notes else "its time is no shorter")
    return Caught(False, "; ".join(attack.notes) or "nothing was noticed")


def wrong_with(honest: TimingSession | str) -> str:
    """Return why a twin was not timed, or what is wrong with its outputs; empty where all is well."""
    if isinstance(honest, str):
        return honest
    if honest.checked is None:
        return "not checked"
    return honest.checked.wrong or ("" if honest.checked.runs else honest.checked.unknown or "not checked")


def _read(trick: Trick) -> list[str]:
    """Return what reading the text finds for certain, before anything runs: the gate's first step."""
    text = trick.attack.text
    return sorted({finding.code for finding in read(text, trick.honest.text) if finding.certain})


def _us(session: TimingSession | str) -> str:
    return "-" if isinstance(session, str) else microseconds(session.call.us)
