"""Run and time kernels under today's Neuron SDK: compile with ``nki``, profile with ``neuron-explorer``, time with
``nrtpy``.

Written from AWS's documentation of SDK 2.32 and 2.33. Not yet run on hardware.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accelopt_profiling.trainium.array_files import save_array
from accelopt_profiling.trainium.device_run import DeviceRequest, DeviceRun, Samples, samples_of, steadiest
from accelopt_profiling.trainium.execution import Execution, execute, program_file, read_answer
from accelopt_profiling.trainium.summary import ProfileSummary, read_summary
from accelopt_profiling.trainium.tools import DeviceError, run_tool

#: Which execution is profiled: the first one still warms up.
PROFILED_EXECUTION = 2


@dataclass(frozen=True)
class CurrentDevice:
    """``python`` has ``nki``.

    ``explorer`` is the path of ``neuron-explorer``; ``nrtpy_python`` the Python of the environment that has ``nrtpy``,
    None where there is none: then the profiled execution's time is the latency.
    """

    python: str
    explorer: str | None
    nrtpy_python: str | None
    environment: Mapping[str, str]
    toolchain: Mapping[str, str]
    generation: str = "current"

    def run(self, request: DeviceRequest) -> DeviceRun:
        """Compile, run, profile and time the kernel.

        Raises:
            DeviceError: see its codes.
        """
        notes: list[str] = []
        execution = self._execute(request)
        neff = execution.files[0][0]
        summary: ProfileSummary | None = None
        if self.explorer is None:
            notes.append(
                "neuron-explorer is not installed, so there is no profile; install aws-neuronx-tools."
            )
        else:
            try:
                summary = self._profile(neff, request)
            except DeviceError as failure:
                if self.nrtpy_python is None:
                    raise
                notes.append(f"There is no profile: {failure}")
        samples = self._samples(request, execution, summary, notes)
        return DeviceRun(
            execution.outputs, samples, summary=summary, toolchain=dict(self.toolchain), notes=notes
        )

    def outputs(self, request: DeviceRequest) -> list[Any]:
        """Compile and run the kernel once, without a profile, and return what it returned.

        Raises:
            DeviceError: the kernel or the device failed.
        """
        return self._execute(request).outputs

    def _execute(self, request: DeviceRequest) -> Execution:
        folder = request.folder / "compiled"
        environment = {
            **self.environment,
            "NKI_ARTIFACTS_DIR": str(folder),
            "NEURON_PLATFORM_TARGET_OVERRIDE": request.target,
            "NEURON_RT_VISIBLE_CORES": str(request.core),
            "NKI_DEBUG_INFO": "1",
        }
        return execute(request, "current", folder=folder, environment=environment, python=self.python)

    def _profile(self, neff: Path, request: DeviceRequest) -> ProfileSummary:
        assert self.explorer is not None
        environment = {**self.environment, "NEURON_RT_VISIBLE_CORES": str(request.core)}
        trace = request.folder / "profile.ntff"
        capture = [
            self.explorer, "capture", "-n", str(neff), "-s", str(trace),
            f"--profile-nth-exec={PROFILED_EXECUTION}", "--enable-dge-notifs",
        ]  # fmt: skip
        run_tool(capture, seconds=request.seconds, environment=environment, folder=request.folder)
        saved = trace.with_name(f"{trace.stem}_exec_{PROFILED_EXECUTION}.ntff")
        captured = next((path for path in (saved, trace) if path.is_file()), None)
        if captured is None:
            raise DeviceError(
                "tool-failed", f"neuron-explorer capture left neither {saved.name} nor {trace.name}"
            )
        view = [
            self.explorer,
            "view",
            "-n",
            str(neff),
            "-s",
            str(captured),
            "--output-format",
            "summary-json",
        ]
        printed = run_tool(view, seconds=request.seconds, environment=environment, folder=request.folder)
        return read_summary(printed, "neuron-explorer")

    def _samples(
        self, request: DeviceRequest, execution: Execution, summary: ProfileSummary | None, notes: list[str]
    ) -> Samples:
        if self.nrtpy_python is not None:
            return steadiest(lambda: self._benchmark(request, execution), request.spread, request.rounds)
        if summary is None:
            raise DeviceError(
                "missing-tool",
                "Neither neuron-explorer nor nrtpy is installed, so nothing can time the kernel",
                "Install aws-neuronx-tools, or set ACCELOPT_NRTPY_PYTHON to the Python of an nrtpy environment.",
            )
        notes.append("The latency is that of one profiled execution: no nrtpy environment is set.")
        return samples_of([summary.seconds * 1e3])

    def _benchmark(self, request: DeviceRequest, execution: Execution) -> Samples:
        assert self.nrtpy_python is not None
        folder = request.folder / "compiled"
        answer_file = request.folder / "nrtpy_answer.json"
        answer_file.unlink(missing_ok=True)
        job = {
            "neff": str(execution.files[0][0]), "arrays": _arrays(request, execution, folder),
            "warmups": request.warmups, "runs": request.runs, "core": 0, "answer": str(answer_file),
        }  # fmt: skip
        job_file = request.folder / "nrtpy_job.json"
        job_file.write_text(json.dumps(job), encoding="utf-8")
        environment = {**self.environment, "NEURON_RT_VISIBLE_CORES": str(request.core)}
        program = program_file("run_nrtpy.py", folder)
        output = run_tool(
            [self.nrtpy_python, str(program), str(job_file)],
            seconds=request.seconds, environment=environment, folder=request.folder,
        )  # fmt: skip
        answer = read_answer(answer_file, "run_nrtpy.py", output)
        return _samples_in(answer)


def _arrays(request: DeviceRequest, execution: Execution, folder: Path) -> dict[str, dict[str, str]]:
    """Save the kernel's array arguments and return their files by parameter name."""
    if len(execution.names) < len(request.arguments):
        raise DeviceError("tool-failed", "The names of the kernel's parameters are unknown")
    return {
        name: save_array(value, folder / f"argument_{number}.npy")
        for number, (name, value) in enumerate(zip(execution.names, request.arguments, strict=False))
        if isinstance(value, np.ndarray)
    }


def _samples_in(answer: dict[str, Any]) -> Samples:
    try:
        mean, low, high = (float(answer[name]) for name in ("mean_ms", "min_ms", "max_ms"))
        runs = int(answer["iterations"])
    except (KeyError, TypeError, ValueError) as error:
        raise DeviceError("bad-profile", f"nrtpy's answer cannot be read: {error!r}") from None
    if not 0 < low <= mean <= high:
        raise DeviceError("bad-profile", f"nrtpy gives {low}, {mean}, {high} ms as least, mean and most")
    return Samples(mean, low, high, runs)
