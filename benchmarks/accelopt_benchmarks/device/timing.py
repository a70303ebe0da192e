"""Measures part ``timing``: whether a kernel's time repeats, and whether A and B are told apart but not A and A."""

from __future__ import annotations

from pathlib import PurePosixPath
from statistics import median

from accelopt_benchmarks.device.corpus import LIMITS, TIMED, CorpusKernel, kernels, named
from accelopt_benchmarks.device.part_result import PartResult, Table, attempt, microseconds
from accelopt_benchmarks.device.session import DeviceSession, run
from accelopt_benchmarks.result import GoalResult, not_measured
from accelopt_profiling.jobs import Job, JobFiles, Step
from accelopt_profiling.measurement import Latency
from accelopt_profiling.timing.session import TimingSession
from accelopt_profiling.timing.timing_job import time_on

SESSIONS = 3
#: Another way to time, beside ours: Triton's own, in a process that has run nothing else. ``{entry}`` is called.
_DO_BENCH = """
import json, triton
from {module} import {entry}
from {problem} import get_inputs
given = get_inputs()
FOUND = "FOUND_" + str(round(1e6 * triton.testing.do_bench(lambda: {entry}(*given), return_mode="median")))
globals()[FOUND] = True
"""


async def timing(place: DeviceSession) -> PartResult:
    """Time some kernels in several fresh processes each, and one against itself and against itself done twice."""
    lacks = list(place.trouble)
    if not place.usable:
        return PartResult(
            "timing", [not_measured("spread between processes", "<= 2 %", "no device")], [], lacks
        )
    rows: list[GoalResult] = []
    repeated = Table(
        "The same kernel in fresh processes",
        ["kernel", "times (us)", "spread", "interval of one", "runs", "wall (us)", "do_bench (us)", "kernels", "notes"],
    )  # fmt: skip
    for name in TIMED:
        subject = named(kernels(), name)
        sessions = []
        for _ in range(SESSIONS):
            session = await attempt(_session(place, subject), place.left(120))
            if isinstance(session, str):
                lacks.append(f"{name}: {session}")
                break
            sessions.append(session)
        if len(sessions) == SESSIONS:
            theirs = await attempt(_do_bench(place, subject), place.left(120))
            if isinstance(theirs, str):
                lacks.append(f"{name}: do_bench: {theirs}")
            repeated.rows.append(_repeated(name, sessions, None if isinstance(theirs, str) else theirs))
            spread = _spread([s.call for s in sessions])
            what = f"{name}: spread of {SESSIONS} fresh processes"
            rows.append(GoalResult(what, "<= 2 %", 100 * spread, "%", spread <= 0.02))
            wrong = [s.checked.wrong for s in sessions if s.checked is not None and s.checked.wrong]
            rows.append(GoalResult(f"{name}: outputs of timed runs right", "all", SESSIONS - len(wrong), "",
                            not wrong, "; ".join(wrong[:1])))  # fmt: skip
    rows += await _comparisons(place, lacks)
    conditions = Table("Conditions", ["kernel", "before", "after"])
    last = await attempt(_session(place, named(kernels(), "scale")), place.left(120))
    if not isinstance(last, str):
        conditions.rows.append(["scale", str(last.before), str(last.after)])
    return PartResult("timing", rows, [repeated, conditions], lacks)


async def _session(place: DeviceSession, subject: CorpusKernel, baseline: str | None = None) -> TimingSession:
    source, own_kernels, ref = subject.profile_inputs()
    return await time_on(place.host, source, own_kernels, ref, baseline, limits=LIMITS)


def _spread(times: list[Latency]) -> float:
    us = [time.us for time in times if time.us]
    return (max(us) - min(us)) / median(us) if us else float("inf")


def _repeated(name: str, sessions: list[TimingSession], do_bench_us: float | None) -> list[str]:
    first = sessions[0]
    spread = _spread([session.call for session in sessions])
    width = (first.call.high_us or 0) - (first.call.low_us or 0)
    return [
        name, ", ".join(microseconds(s.call.us) for s in sessions), f"{100 * spread:.1f} %",
        f"{100 * width / (first.call.us or 1):.1f} %", str(first.runs), microseconds(first.wall.us),
        microseconds(do_bench_us), ", ".join(first.names or ["no tracer"]), "; ".join(first.notes) or "-",
    ]  # fmt: skip


async def _do_bench(place: DeviceSession, subject: CorpusKernel) -> float:
    """Microseconds by Triton's do_bench."""
    source, _, _ = subject.profile_inputs()
    entry = "scale" if subject.name == "tiny" else subject.name
    text = _DO_BENCH.format(module=subject.path.stem, problem=subject.problem.stem, entry=entry)
    path = str(PurePosixPath(source.kernel).with_name("ask.py"))
    job_source = JobFiles(path, {**source.files, path: text}, name="ask.py")
    value = await run(place.host, Job(job_source, [Step("load", "torch", limits=LIMITS, device=True)]))
    return float(next(n for n in value["names"] if n.startswith("FOUND_")).removeprefix("FOUND_")) / 1e3


async def _comparisons(place: DeviceSession, lacks: list[str]) -> list[GoalResult]:
    """Compare a kernel with itself, which is noise, and with itself done twice, which is slower."""
    subject = named(kernels(), "scale")
    once = subject.text
    call = "    scale_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)\n"
    twice = once.replace(call, call + call)
    assert twice != once
    rows = []
    cases = [("A against A", once, once, "within noise"), ("A against twice A", once, twice, "faster"),
             ("twice A against A", twice, once, "slower")]  # fmt: skip
    for what, ours, theirs, answer in cases:
        source, own_kernels, ref = subject.profile_inputs()
        changed = JobFiles(source.kernel, {**source.files, source.kernel: ours}, [], source.name)
        session = await attempt(
            time_on(place.host, changed, own_kernels, ref, theirs, limits=LIMITS), place.left(120)
        )
        if isinstance(session, str) or session.comparison is None:
            lacks.append(f"{what}: {session if isinstance(session, str) else 'no comparison'}")
            rows.append(not_measured(what, answer, "see what was lacking"))
            continue
        got = session.comparison
        detail = f"{got.answer}: {got.low:.3f} to {got.high:.3f} in {got.pairs} rounds"
        rows.append(GoalResult(what, answer, got.ratio, "x", got.answer == answer, detail))
    return rows
