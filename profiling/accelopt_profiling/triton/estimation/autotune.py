"""Compile and estimate the configurations that an autotuner would time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from accelopt_profiling.line_hint import WIDTH
from accelopt_profiling.measurement import Finding, LineCost, Severity
from accelopt_profiling.quantity import executed
from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.capture.launch import CapturedLaunch
from accelopt_profiling.triton.capture.session import LaunchExecution, count_sample
from accelopt_profiling.triton.compilation.compile import compile_launch
from accelopt_profiling.triton.compilation.compiled import CompiledFacts
from accelopt_profiling.triton.estimation.estimate import LaunchEstimate, estimate


@dataclass(frozen=True)
class AutotuneConfiguration:
    """One configuration as it would be launched. ``estimate`` is None where it could not be launched or counted."""

    execution: LaunchExecution
    compiled: CompiledFacts
    estimate: LaunchEstimate | None

    @property
    def text(self) -> str:
        return describe_configuration(self.execution.launch)

    def line(self, configurations: Sequence[AutotuneConfiguration], total: int, line: int) -> LineCost:
        """Return the hint at the line of ``def`` that names this configuration."""
        tried = f"{len(configurations)} of {total}" if len(configurations) < total else f"{total}"
        text = f"assumes {self.text}: shortest estimate of {tried} configurations"
        known = {"configurations": executed(len(configurations), "configurations")}
        return LineCost(line, text, None, known, f"shortest of {tried} configurations"[:WIDTH])


def describe_configuration(launch: CapturedLaunch) -> str:
    """Return what an autotuner may vary as text: "TILE=128, num_warps=4, num_stages=2"."""
    chosen = {p.name for p in launch.fn.params if p.is_constexpr}
    values = {n: v for n, v in launch.constants.items() if n in chosen and isinstance(v, int)}
    parts = [f"{name}={value}" for name, value in values.items() if not isinstance(value, bool)]
    options = [
        f"{name}={launch.options[name]}" for name in ("num_warps", "num_stages") if name in launch.options
    ]
    return ", ".join(parts + options)


def tried_for(execution: LaunchExecution, executions: Sequence[LaunchExecution]) -> list[LaunchExecution]:
    """Return the autotuner's tries that led to ``execution``: those right before it, of the same kernel."""
    found: list[LaunchExecution] = []
    for other in executions:
        if other.launch.fn is not execution.launch.fn:
            continue
        if other is execution:
            return found
        found = [*found, other] if other.tuning else found
    return found


def try_all(
    tried: Sequence[LaunchExecution], target: GpuTarget, sample: int, seconds: float
) -> list[AutotuneConfiguration]:
    """Compile and estimate configurations in their order until ``seconds`` have passed; the rest is left out."""
    started = time.perf_counter()
    found: list[AutotuneConfiguration] = []
    counted: dict[str, LaunchExecution] = {}
    for execution in tried:
        if found and time.perf_counter() - started > seconds:
            break
        compiled = compile_launch(execution.launch, target)
        made: LaunchEstimate | None = None
        if compiled.problem is None:
            key = repr((execution.launch.constants, execution.launch.grid))
            if key not in counted:
                counted[key] = count_sample(execution.launch, sample)
            known = counted[key]
            execution.counts, execution.line_tensors = known.counts, known.line_tensors
            execution.program_bytes, execution.faults, execution.error = (
                known.program_bytes,
                known.faults,
                known.error,
            )
            if known.counts is not None and known.counts.sampled:
                made = estimate(known.counts, compiled, target)
        found.append(AutotuneConfiguration(execution, compiled, made))
    return found


def best(configurations: Sequence[AutotuneConfiguration]) -> AutotuneConfiguration | None:
    """Return the configuration with the shortest estimate; the first of equals, None when none can be launched.

    The model does not see bank conflicts or instruction order: configurations that differ only there tie.
    """
    launchable = [c for c in configurations if c.estimate is not None]
    return min(launchable, key=lambda c: (c.estimate and c.estimate.latency.us) or 0.0, default=None)


def configuration_findings(configurations: Sequence[AutotuneConfiguration], line: int) -> list[Finding]:
    """Return a ``capacity`` finding per configuration that the target cannot launch; errors when it can launch none."""
    problems = [(c, c.compiled.problem) for c in configurations if c.compiled.problem is not None]
    found = []
    for configuration, problem in problems:
        code = "capacity" if problem.kind == "out-of-resources" else "kernel-raised"
        message = f"The configuration {configuration.text} cannot be launched: {problem.message}."
        severity: Severity = "error" if len(problems) == len(configurations) else "information"
        found.append(Finding(code, problem.line or line, severity, message))
    return found
