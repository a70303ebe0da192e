"""Compile and estimate the configurations that an autotuner would time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from accelopt_profiling.measurement import Finding, LineCost
from accelopt_profiling.quantity import executed
from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.capture.session import LaunchExecution, count_sample
from accelopt_profiling.triton.compilation.compile import compile_launch
from accelopt_profiling.triton.compilation.compiled import CompiledFacts, CompileProblem
from accelopt_profiling.triton.estimation.estimate import LaunchEstimate, estimate
from accelopt_profiling.triton.findings import problem_finding
from accelopt_profiling.triton.launch import describe_configuration

#: So many configurations of a kernel are compiled. Our choice, for some seconds on two cores.
MOST_COMPILED = 8
#: Values of one access that a thread may hold. A thread has 255 registers at most: beyond, a program spills most of
#: them, is never the fastest, and compiles for long (a layer norm with 1024 values: 39 s, with 256: 3 s).
MOST_VALUES = 256
#: A configuration that takes so many times as long as the best one is not tried again on a rewrite of the kernel.
_SLOW = 1.2


@dataclass(frozen=True)
class AutotuneConfiguration:
    """One configuration as it would be launched.

    ``estimate`` is None where it could not be launched or counted.
    """

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
        quantities = {"configurations": executed(len(configurations), "configurations")}
        return LineCost(line, text, share=None, quantities=quantities, cause=f"shortest of {tried} configs")


def tried_for(execution: LaunchExecution, executions: Sequence[LaunchExecution]) -> list[LaunchExecution]:
    """Return the autotuner's tries that led to ``execution``: the last ones before it, of the same kernel."""
    tries: list[LaunchExecution] = []
    launched = False
    for other in executions:
        if other is execution:
            break
        if other.launch.fn is execution.launch.fn:
            if other.tuning:
                tries = [other] if launched else [*tries, other]
            launched = not other.tuning
    return tries


def slow(
    tried: Sequence[LaunchExecution], configurations: Sequence[AutotuneConfiguration]
) -> tuple[str, ...]:
    """Return those of ``tried``, as text, that need not be tried on a rewrite of the kernel. A rewrite under which one
    of them would become the best is taken for slower than it is, never for faster."""
    chosen = best(configurations)
    if chosen is None or chosen.estimate is None:
        return ()
    most = _SLOW * (chosen.estimate.latency.us or 0.0)
    fast = {
        c.text for c in configurations
        if c.estimate is not None and (c.estimate.latency.us or 0.0) <= most
    }  # fmt: skip
    texts = dict.fromkeys(describe_configuration(execution.launch) for execution in tried)
    return tuple(text for text in texts if text not in fast)


def without_slow(tried: Sequence[LaunchExecution], slow_texts: Sequence[str]) -> Sequence[LaunchExecution]:
    """Return ``tried`` without the configurations described by ``slow_texts``, whatever else they are compiled for; all
    of them where none would be left."""
    if not slow_texts:
        return tried
    each = [set(text.split(", ")) for text in slow_texts]
    rest = [
        execution for execution in tried
        if not any(parts <= set(describe_configuration(execution.launch).split(", ")) for parts in each)
    ]  # fmt: skip
    return rest or tried


def try_all(
    tried: Sequence[LaunchExecution],
    target: GpuTarget,
    sample: int,
    counted_before: Sequence[LaunchExecution] = (),
) -> list[AutotuneConfiguration]:
    """Compile and estimate the configurations that look best by their counts alone, in the order they were tried.

    At most ``MOST_COMPILED`` that can be launched are compiled: two of each block shape, the shapes with the shortest
    first estimates first, then the next two. So the choice depends on the kernel alone, not on how fast it was made.
    Those with more than ``MOST_VALUES`` a thread are compiled only where no other can be launched. Launches of the same
    arguments that were ``counted_before`` are not counted again.
    """
    counted = {_counted_as(e): e for e in counted_before if e.counts is not None and e.error is None}
    groups: dict[str, list[LaunchExecution]] = {}
    for execution in tried:
        key = _counted_as(execution)
        if key not in counted:
            counted[key] = count_sample(execution.launch, sample)
        _take_counts(execution, counted[key])
        groups.setdefault(key, []).append(execution)
    ranked = sorted(groups.values(), key=lambda group: _first_estimate(group[0], target))
    pairs = [group[n : n + 2] for n in range(0, max(map(len, ranked), default=0), 2) for group in ranked]
    estimates: dict[int, AutotuneConfiguration] = {}
    launchable = 0
    for execution in sorted((one for pair in pairs for one in pair), key=lambda one: _crowded(one, target)):
        if launchable == MOST_COMPILED or (launchable and _crowded(execution, target)):
            break
        compiled = compile_launch(execution.launch, target)
        launch_estimate: LaunchEstimate | None = None
        if compiled.problem is None:
            launchable += 1
            if execution.counts is not None and execution.counts.sampled:
                launch_estimate = estimate(execution.counts, compiled, target)
        estimates[id(execution)] = AutotuneConfiguration(execution, compiled, launch_estimate)
    return [estimates[id(execution)] for execution in tried if id(execution) in estimates]


def _counted_as(execution: LaunchExecution) -> str:
    """Name what a launch's counts depend on."""
    launch = execution.launch
    arguments = [(a.data_ptr(), a.shape, a.stride()) if hasattr(a, "data_ptr") else a for a in launch.args]
    return repr((launch.constants, launch.grid, arguments))


def _crowded(execution: LaunchExecution, target: GpuTarget) -> bool:
    """Tell whether a thread has more values than it can hold."""
    widest = execution.counts.widest if execution.counts is not None else 0
    return widest > MOST_VALUES * target.warp_size * int(execution.launch.options.get("num_warps", 4))


def _take_counts(execution: LaunchExecution, source: LaunchExecution) -> None:
    execution.counts, execution.line_tensors = source.counts, source.line_tensors
    execution.program_bytes, execution.faults, execution.error = (
        source.program_bytes,
        source.faults,
        source.error,
    )


def _first_estimate(execution: LaunchExecution, target: GpuTarget) -> float:
    """Return the estimate in us without the compiler's facts. Infinity where nothing was counted."""
    counts = execution.counts
    if counts is None or not counts.sampled:
        return math.inf
    return estimate(counts, None, target).latency.us or 0.0


def best(configurations: Sequence[AutotuneConfiguration]) -> AutotuneConfiguration | None:
    """Return the configuration with the shortest estimate.

    The first of equals, None when none can be launched.

    The model does not see bank conflicts or instruction order: configurations that differ only there tie.
    """
    launchable = [c for c in configurations if c.estimate is not None]
    return min(launchable, key=lambda c: (c.estimate and c.estimate.latency.us) or 0.0, default=None)


def configuration_findings(configurations: Sequence[AutotuneConfiguration], line: int) -> list[Finding]:
    """Return a finding per reason why the target cannot launch configurations.

    Errors where it can launch none.
    """
    by_problem: dict[CompileProblem, list[AutotuneConfiguration]] = {}
    for configuration in configurations:
        if (problem := configuration.compiled.problem) is not None:
            by_problem.setdefault(problem, []).append(configuration)
    none_left = sum(map(len, by_problem.values())) == len(configurations)
    findings = []
    for problem, alike in by_problem.items():
        first = alike[0].text
        which = (
            f"The configuration {first}" if len(alike) == 1 else f"{len(alike)} configurations (as {first})"
        )
        how = "cannot be launched" if problem.refused else "was not tried"
        message = f"{which} {how}: {problem.message.removesuffix('.')}."
        finding = replace(problem_finding(problem, line), message=message)
        findings.append(finding if none_left else replace(finding, severity="information"))
    return findings
