"""A device run as the measurement that every other source of numbers yields too."""

from __future__ import annotations

from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import Correctness, KernelMeasurement
from accelopt_profiling.quantity import measured
from accelopt_profiling.trainium.request import DeviceRun
from accelopt_profiling.trainium.summary import bound, quantities


def device_measurement(
    kernel: Kernel,
    run: DeviceRun,
    target: str,
    host: str = "local",
    correctness: Correctness | None = None,
    roofline_us: float | None = None,
) -> KernelMeasurement:
    """The measurement of ``kernel``; every number in it is measured. ``roofline_us`` gives percent of peak."""
    latency = run.samples.latency
    found = quantities(run.summary) if run.summary is not None else {}
    found["runs"] = measured(run.samples.runs)
    share = None if roofline_us is None or not latency.us else 100 * roofline_us / latency.us
    return KernelMeasurement(
        name=kernel.name, line=kernel.line, dialect="nki", target=target, host=host,
        correctness=correctness or Correctness(), latency=latency, percent_of_peak=share,
        bound=bound(run.summary) if run.summary is not None else None, quantities=found,
        content_hash=kernel.content_hash, stage="timed", toolchain=run.toolchain,
    )  # fmt: skip
