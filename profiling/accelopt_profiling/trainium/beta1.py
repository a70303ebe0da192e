"""Run and time kernels under Neuron SDK 2.26 and older, with ``nki.baremetal`` and ``neuron-profile view``.

The steps are AccelOpt's (accelopt/kernel_wrapper.py at 47e29a7), so that its numbers can be compared. Not yet run on
hardware.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accelopt_profiling.trainium.device_run import DeviceRequest, DeviceRun, Samples, samples_of, steadiest
from accelopt_profiling.trainium.execution import Execution, execute
from accelopt_profiling.trainium.summary import ProfileSummary, read_summary
from accelopt_profiling.trainium.tools import DeviceError, run_tool


@dataclass(frozen=True)
class Beta1Device:
    """``python`` has ``neuronxcc.nki``; ``profiler`` is the path of ``neuron-profile``."""

    python: str
    profiler: str
    environment: Mapping[str, str]
    toolchain: Mapping[str, str]
    generation: str = "beta1"

    def run(self, request: DeviceRequest) -> DeviceRun:
        """Run and time the kernel, at most ``request.rounds`` rounds.

        Raises:
            DeviceError: see its codes.
        """
        environment = self._environment(request)
        executions: list[Execution] = []
        profiles: list[ProfileSummary] = []

        def one_round() -> Samples:
            folder = request.folder / f"round_{len(executions)}"
            executions.append(
                execute(request, "beta1", folder=folder, environment=environment, python=self.python)
            )
            summaries = [
                view(self.profiler, neff, ntff=ntff, seconds=request.seconds, environment=self.environment)
                for neff, ntff in executions[-1].files
            ]
            if not summaries:
                raise DeviceError("bad-profile", "No execution was profiled")
            profiles.append(summaries[-1])
            return samples_of([summary.seconds * 1e3 for summary in summaries])

        samples = steadiest(one_round, request.spread, request.rounds)
        return DeviceRun(executions[-1].outputs, samples, profiles[-1], dict(self.toolchain))

    def outputs(self, request: DeviceRequest) -> list[Any]:
        """Run the kernel once, without a profile, and return what it returned.

        Raises:
            DeviceError: the kernel or the device failed.
        """
        once = replace(request, runs=1, warmups=0)
        return execute(
            once,
            "beta1",
            folder=request.folder / "once",
            environment=self._environment(request),
            python=self.python,
        ).outputs

    def _environment(self, request: DeviceRequest) -> dict[str, str]:
        return {
            **self.environment,
            "NEURON_CC_FLAGS": "--auto-cast=none",
            "NEURON_RT_NUM_CORES": "1",
            "NEURON_RT_VISIBLE_CORES": str(request.core),
        }


def view(
    profiler: str, neff: Path, ntff: Path | None, seconds: float, environment: Mapping[str, str]
) -> ProfileSummary:
    """Return the profile of one recorded execution, as ``neuron-profile view`` summarizes it.

    Raises:
        DeviceError: a file is missing, the profiler failed, or what it printed cannot be read.
    """
    for path in (neff, ntff):
        if path is None or not path.is_file():
            raise DeviceError("tool-failed", f"nki.baremetal left no {path.name if path else 'trace'}")
    command = [profiler, "view", "--output-format", "summary-json", "-n", str(neff), "-s", str(ntff)]
    printed = run_tool(command, seconds=seconds, environment=environment, folder=neff.parent)
    return read_summary(printed, "neuron-profile")
