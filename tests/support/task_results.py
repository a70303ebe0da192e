"""Results of the benchmark as a run would tell them, without one."""

import dataclasses

from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known
from nkibench.result import TaskResult


def latency(us):
    return Latency(us, us * 0.8, us * 1.2, Known.ESTIMATED)


def result(task="silu", us=1000.0, **changes):
    plain = TaskResult(
        task, f"{task}_M1", "trn1", "beta1", "k.py", "passed", error=4e-8, cases=9, latency=latency(us),
        bound="memory", peak_us=500.0, peak_bound="memory", published_ms=1.333, key=task,
    )  # fmt: skip
    return dataclasses.replace(plain, **changes)
