"""Measures part ``evaluators``: runs KernelBench's and FlashInfer-Bench's own evaluators on the same kernels.

Each evaluation is a process of its own. Neither is needed otherwise: KernelBench is a checkout (``--kernelbench DIR``),
FlashInfer-Bench an installed package.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from accelopt_benchmarks.device import flashinfer_evaluator
from accelopt_benchmarks.device.corpus import LIMITS, TIMED, CorpusKernel, Trick, kernels, named, tricks
from accelopt_benchmarks.device.part_result import PartResult, Table, attempt, microseconds
from accelopt_benchmarks.device.programs import JUDGED, answer_of, program
from accelopt_benchmarks.device.session import DeviceSession
from accelopt_benchmarks.device.tricks import GAINED_NOTHING
from accelopt_benchmarks.result import GoalResult, not_measured
from accelopt_profiling.timing.timing_job import time_on


@dataclass(frozen=True)
class EvaluatorVerdict:
    """What an evaluator says of one kernel file: whether it accepts it, its time in microseconds, and the seconds that
    the whole evaluation took. ``said`` has its words when it does not accept.
    """

    accepted: bool
    us: float | None
    seconds: float
    said: str = ""


Evaluate = Callable[[CorpusKernel], Awaitable[EvaluatorVerdict]]


async def evaluators(place: DeviceSession, kernelbench: Path | None) -> PartResult:
    """Return our evaluator and those of the others that are there; ``kernelbench`` is a checkout of KernelBench."""
    lacks = list(place.trouble)
    if not place.usable:
        return PartResult(
            "evaluators", [not_measured("beside other evaluators", "told", "no device")], [], lacks
        )

    def by_program(module: str, *more: object) -> Evaluate:
        return lambda subject: asyncio.to_thread(
            _judged_by, program(module, subject.path, subject.problem, *more)
        )

    async def ours(subject: CorpusKernel) -> EvaluatorVerdict:
        began = time.perf_counter()
        source, found, ref = subject.asked()
        session = await time_on(place.host, source, found, ref, limits=LIMITS)
        wrong = session.checked.wrong if session.checked else "not checked"
        return EvaluatorVerdict(not wrong, session.call.us, time.perf_counter() - began, wrong)

    judges: dict[str, Evaluate] = {"AccelOpt LSP": ours}
    if kernelbench is not None:
        judges["KernelBench"] = by_program("kernelbench_evaluator", kernelbench.resolve())
    else:
        lacks.append("KernelBench: no checkout was given (--kernelbench DIR)")
    judges["FlashInfer-Bench"] = by_program("flashinfer_evaluator")
    said = await attempt(asyncio.to_thread(flashinfer_evaluator.missing), place.left(120))
    if said:
        lacks.append(f"FlashInfer-Bench: {said}")
        del judges["FlashInfer-Bench"]
    return await compared(place, judges, lacks)


async def compared(place: DeviceSession, judges: dict[str, Evaluate], lacks: list[str]) -> PartResult:
    """Return every judge on the honest kernels, the tricks and their twins."""
    times = Table("Times (us) and seconds per evaluation", ["kernel", *judges])
    verdicts = Table("Tricks: what is accepted as right, and its time (us)", ["trick", "file", *judges])
    caught, alarms, total = dict.fromkeys(judges, 0), dict.fromkeys(judges, 0), 0
    for subject in (named(kernels(), name) for name in TIMED):
        cells = []
        for name, judge in judges.items():
            judged = await attempt(judge(subject), place.left(150))
            if isinstance(judged, str) or not judged.accepted:
                lacks.append(f"{name}, {subject.name}: {judged if isinstance(judged, str) else judged.said}")
            cells.append(
                "-" if isinstance(judged, str) else f"{microseconds(judged.us)}; {judged.seconds:.1f} s"
            )
        times.rows.append([subject.name, *cells])
    for trick in tricks():
        total += 1
        found = {name: await _both(place, judge, trick) for name, judge in judges.items()}
        for name, (attack, honest) in found.items():
            caught[name] += gained_nothing(attack, honest)
            alarms[name] += not (isinstance(honest, EvaluatorVerdict) and honest.accepted)
        for file, number in (("attack", 0), ("twin", 1)):
            verdicts.rows.append([trick.name, file, *(_cell(both[number]) for both in found.values())])
    rows = []
    for name in judges:
        goal, met = ("100 %", caught[name] == total) if name == "AccelOpt LSP" else ("told", None)
        share = 100 * caught[name] / max(1, total)
        rows.append(GoalResult(f"{name}: device tricks that gain nothing", goal, share, "%", met,
                        f"of {total}; {alarms[name]} honest twins not accepted"))  # fmt: skip
    return PartResult("evaluators", rows, [times, verdicts], lacks)


async def _both(
    place: DeviceSession, judge: Evaluate, trick: Trick
) -> tuple[EvaluatorVerdict | str, EvaluatorVerdict | str]:
    return (
        await attempt(judge(trick.attack), place.left(150)), await attempt(judge(trick.honest), place.left(150))
    )  # fmt: skip


def gained_nothing(attack: EvaluatorVerdict | str, honest: EvaluatorVerdict | str) -> bool:
    """Return an attack that is refused, fails, or is as slow as its honest twin."""
    if isinstance(attack, str) or not attack.accepted:
        return True
    return isinstance(honest, EvaluatorVerdict) and bool(
        attack.us and honest.us and attack.us >= GAINED_NOTHING * honest.us
    )


def _cell(judged: EvaluatorVerdict | str) -> str:
    if isinstance(judged, str):
        return "failed"
    return f"accepted, {microseconds(judged.us)}" if judged.accepted else "refused"


def _judged_by(command: list[str]) -> EvaluatorVerdict:
    """Run an evaluator's program. Raises ValueError: it did not tell a judgement."""
    with tempfile.TemporaryDirectory(prefix="accelopt-evaluator-") as folder:
        began = time.perf_counter()
        own_cache = {"TRITON_CACHE_DIR": str(Path(folder) / "triton")}
        told = answer_of(JUDGED, command, 150, folder, own_cache)
        seconds = time.perf_counter() - began
    return EvaluatorVerdict(bool(told["accepted"]), told["us"], seconds, str(told.get("said", "")))
