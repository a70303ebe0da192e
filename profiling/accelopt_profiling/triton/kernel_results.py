"""Keep what is known of one kernel while its file is profiled, and make its measurement of it."""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

from accelopt_profiling.kernels import Kernel
from accelopt_profiling.main_work import MissedWork, missed_work
from accelopt_profiling.measurement import (
    Correctness,
    Finding,
    KernelMeasurement,
    Latency,
    Launchability,
    LaunchTime,
    LineCost,
    Severity,
)
from accelopt_profiling.problems.inference.own_faults import own_fault_line
from accelopt_profiling.problems.loading.inferred import floor_finding, of_inferred
from accelopt_profiling.quantity import Known, Quantity, estimated, executed
from accelopt_profiling.ran import LineRecord, ran, reachable
from accelopt_profiling.source_text import syntax_of
from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton import hints
from accelopt_profiling.triton.capture.session import LaunchExecution
from accelopt_profiling.triton.compilation.compile import compile_launch
from accelopt_profiling.triton.compilation.compiled import CompiledFacts, CompileProblem
from accelopt_profiling.triton.estimation import autotune
from accelopt_profiling.triton.estimation.causes import cost_findings
from accelopt_profiling.triton.estimation.estimate import LaunchEstimate, estimate, time_at_scale
from accelopt_profiling.triton.findings import execution_findings, problem_finding, spill_findings
from accelopt_profiling.triton.interpreter.counting import SECTOR_BYTES
from accelopt_profiling.triton.launch import (
    describe_arguments,
    describe_configuration,
    largest_tensor,
)

#: A launch with inferred arguments that touches less than this share of a tensor of more bytes is pointed out.
_LITTLE, _LARGE = 0.01, 1 << 20

#: So many kinds of launches of a kernel are compiled where each launch is compared: for about a second.
_MOST_KINDS = 4

_STAGES = ("traced", "executed", "compiled", "checked")


@dataclasses.dataclass
class KernelResults:
    """The results for one kernel so far.

    ``checks`` are launches at smaller sizes, whose results were compared. ``text`` is that of its file, ``values``
    tells that the launches had the problem's inputs, ``written`` how little of the output they write, where that is
    less than half. ``wanted`` says for which of how many launches the cost is to be stated, ``slow`` which
    configurations of an autotuner are not tried.
    """

    kernel: Kernel
    target: GpuTarget
    text: str = ""
    wanted: tuple[int, int] | None = None
    slow: Sequence[str] = ()
    executions: list[LaunchExecution] = dataclasses.field(default_factory=list)
    checks: list[LaunchExecution] = dataclasses.field(default_factory=list)
    tried: list[LaunchExecution] = dataclasses.field(default_factory=list)
    configurations: list[autotune.AutotuneConfiguration] = dataclasses.field(default_factory=list)
    chosen: autotune.AutotuneConfiguration | None = None
    compiled: CompiledFacts | None = None
    each: dict[int, CompiledFacts] = dataclasses.field(default_factory=dict)
    correctness: Correctness = dataclasses.field(default_factory=Correctness)
    stage: str = _STAGES[0]
    values: bool = False
    written: str = ""

    def write_little(self, tensor: Any, elements: int) -> None:
        """Note that the launches wrote less than half of a tensor that the problem's call returned, if they were given
        it."""
        there = tensor.untyped_storage().data_ptr()
        arguments = [a for e in self.executions for a in e.launch.args if hasattr(a, "untyped_storage")]
        if any(a.untyped_storage().data_ptr() == there for a in arguments):
            self.written = f"{elements:,} of the {tensor.numel():,} elements that are returned"

    @property
    def counted(self) -> bool:
        """Whether every launch ran to its end inside its tensors and was counted."""
        ran = [e for e in self.executions if e.counts is not None and e.error is None and not e.faults]
        return bool(ran) and len(ran) == len(self.executions) and not self.empty

    @property
    def empty(self) -> bool:
        """Whether it was launched, and with grids of no programs alone."""
        return bool(self.executions) and not any(e.launch.programs for e in self.executions)

    def take(self, executions: Sequence[LaunchExecution], values: bool) -> None:
        """Take the launches of a run, the autotuner's tries among them.

        Those tries are of interest that led to the launch that is stated.
        """
        self.values = values
        self.executions = [e for e in executions if not e.tuning]
        tried = [(e, tries) for e in self.executions if (tries := autotune.tried_for(e, executions))]
        if tried:
            stated = self._stated()
            first = [pair for pair in tried if pair[0] is stated]
            self.tried = max(first or tried, key=lambda pair: self._cost(pair[0]))[1]

    def reach(self, stage: str) -> None:
        """Note that a kernel that was launched came as far as ``stage``."""
        if self.executions and _STAGES.index(stage) > _STAGES.index(self.stage):
            self.stage = stage

    def representative(self) -> tuple[LaunchExecution, LaunchEstimate | None] | None:
        """Return the wanted launch, else the one with the longest estimate.

        Of an autotuned kernel the chosen configuration.
        """
        if self.chosen is not None:
            return self.chosen.execution, self._estimate(self.chosen.execution)
        stated = self._stated()
        return None if stated is None else (stated, self._estimate(stated))

    def _stated(self) -> LaunchExecution | None:
        if self.wanted is not None and self.wanted[1] == len(self.executions):
            return self.executions[self.wanted[0]]
        return max(self.executions, key=self._cost, default=None)

    def tune(self, sample: int) -> None:
        """Choose among the autotuner's configurations by their estimates.

        ``sample`` programs of each are counted.
        """
        tried = autotune.without_slow(self.tried, self.slow)
        self.configurations = autotune.try_all(tried, self.target, sample, self.executions)
        self.chosen = autotune.best(self.configurations)
        if self.chosen is not None:
            self.compiled = self.chosen.compiled

    def compile_each(self) -> None:
        """Compile the launches of a kernel that is launched several times, each kind once and the first few kinds. The
        launches of a kernel that is autotuned have the configuration that was chosen for one of them."""
        if len(self.executions) < 2 or self.chosen is not None:
            return
        kinds: dict[str, CompiledFacts] = {}
        for number, execution in enumerate(self.executions):
            launch = execution.launch
            kind = repr((launch.constants, launch.signature, launch.attrs, launch.options))
            if kind not in kinds and len(kinds) < _MOST_KINDS:
                kinds[kind] = compile_launch(launch, self.target)
            if kind in kinds:
                self.each[number] = kinds[kind]

    def _problems(self) -> list[CompileProblem]:
        """Return why launches of the problem's run cannot be launched, or were not compiled; of an autotuned kernel why
        none of its configurations can be, once they were compiled."""
        if self.tried:
            problems = [c.compiled.problem for c in self.configurations]
            return [] if None in problems else [p for p in problems if p is not None]
        facts = [*([] if self.compiled is None else [self.compiled]), *self.each.values()]
        return list(dict.fromkeys(f.problem for f in facts if f.problem is not None))

    def _launchable(self) -> Launchability:
        problems = self._problems()
        if self.compiled is None or (self.tried and not self.configurations):
            return Launchability()
        if any(p.refused for p in problems):
            return Launchability("no", Known.COMPILED)
        if problems:
            return Launchability(detail=problems[0].message)
        return Launchability("yes", Known.COMPILED)

    @functools.cached_property
    def functions(self) -> list[ast.FunctionDef]:
        """The kernel and the functions of its file that it calls."""
        return reachable(syntax_of(self.text), self.kernel.line)

    def missed_work(self) -> MissedWork | None:
        """Return where the kernel's main work was missed in every launch."""
        if any(e.error is not None for e in self.executions):
            return None
        if self.written:
            return MissedWork(self.kernel.line, "grid", self.written)
        return missed_work(
            self.functions, self._record(), self.values and all(e.complete for e in self.executions)
        )

    def _record(self) -> LineRecord:
        record = LineRecord()
        for execution in self.executions:
            record.add(execution.ran)
        return record

    def measurement(self, case: str, inferred: bool, findings: Sequence[Finding]) -> KernelMeasurement:
        """Return what is known now.

        ``case`` names the problem's case, ``inferred`` tells that nobody wrote its arguments; ``findings`` are those of
        the whole run.
        """
        chosen = self.representative()
        if chosen is None or self.empty:
            return self._never_launched(inferred)
        execution, launch_estimate = chosen
        measurement = self._blank()
        quantities = {"launches": executed(len(self.executions), "launches")}
        stated = self._stated()
        if self.tried:
            quantities["autotune_configurations"] = executed(len(self.tried), "configurations")
        if execution.counts is not None:
            quantities |= hints.launch_quantities(execution, execution.counts)
        if self.compiled is not None:
            quantities |= self.compiled.quantities()
        if launch_estimate is not None and execution.counts is not None:
            quantities |= launch_estimate.quantities
            quantities["percent_of_peak"] = launch_estimate.percent_of_peak
            quantities["time_at_scale"] = time_at_scale(execution.counts, self.compiled, self.target)
            if (together := self._all_launches()) is not None:
                quantities["all_launches_time"] = together
            measurement = dataclasses.replace(
                measurement,
                case=largest_tensor(execution.launch) + (f" ({case})" if case else ""),
                configuration=describe_configuration(execution.launch),
                arguments=describe_arguments(execution.launch),
                latency=launch_estimate.latency,
                bound=launch_estimate.bound,
                waiting=hints.latency_cause(launch_estimate),
                percent_of_peak=launch_estimate.percent_of_peak.value,
            )
        launchable = self._launchable()
        every = [*findings, *self._findings(execution, launch_estimate)]
        if inferred:
            own = {
                own_fault_line(e.error, e.launch.file, self.text)
                for e in self.executions
                if e.error is not None
            }
            at_floor = (
                launch_estimate is not None
                and launch_estimate.bound == "launch"
                and launchable.status != "no"
            )
            every = [
                *(of_inferred(f, "does-not-compile", own=own) for f in every),
                *self._untouched(execution),
                *([floor_finding(self.kernel.line)] if at_floor else []),
            ]
        measurement = dataclasses.replace(
            measurement,
            quantities=quantities,
            lines=self._lines(execution, launch_estimate),
            findings=list(dict.fromkeys(every)),
            launches=self._each_launch() if self.each else (),
            launch=next((n for n, e in enumerate(self.executions) if e is stated), None),
            slow_configurations=autotune.slow(self.tried, self.configurations),
            toolchain=self.compiled.toolchain if self.compiled else {},
            launchable=launchable,
            ran=ran(self.functions, len(self.executions), self._record()),
        )
        return measurement.without_cost() if launchable.status == "no" else measurement

    def without_problem(self) -> KernelMeasurement:
        """Return the measurement of a kernel of whose arguments nothing is known."""
        kernel = self.kernel
        message = f"No problem was found for {kernel.name}; write `get_inputs` and `reference` for it."
        finding = Finding("no-problem", kernel.line, "information", message)
        return KernelMeasurement(kernel.name, kernel.line, "triton", self.target.name, findings=[finding])

    def _blank(self) -> KernelMeasurement:
        return KernelMeasurement(
            self.kernel.name,
            self.kernel.line,
            "triton",
            self.target.name,
            correctness=self.correctness,
            content_hash=self.kernel.content_hash,
            stage=self.stage,
        )

    def _never_launched(self, inferred: bool) -> KernelMeasurement:
        run = "with the inferred arguments" if inferred else "in the run that was profiled"
        how = f"was not launched {run}"
        if self.executions:
            grid = " x ".join(str(n) for n in self.executions[0].launch.grid)
            how = f"was launched with a grid of {grid} {run}: no program of it runs"
        message = f"{self.kernel.name} {how}, so nothing is known about its cost."
        if inferred:
            message += f" `accelopt profile --kernel {self.kernel.name}` infers arguments for it alone."
        severity: Severity = "information" if inferred else "warning"
        finding = Finding("never-launched", self.kernel.line, severity, message)
        return dataclasses.replace(self._blank(), findings=[finding])

    def _findings(self, execution: LaunchExecution, launch_estimate: LaunchEstimate | None) -> list[Finding]:
        line = self.kernel.line
        findings = [f for e in self.checks or self.executions for f in execution_findings(e)]
        findings += autotune.configuration_findings(self.configurations, line)
        if execution.counts is not None:
            outside = {fault.line for fault in execution.faults}
            findings += [f for f in hints.line_findings(execution.counts) if f.line not in outside]
        if not self.tried and execution.error is None:  # the compiler would say the same again
            findings += [problem_finding(problem, line) for problem in self._problems()]
        if self.compiled is not None:
            findings += spill_findings(self.compiled, line)
        if self.correctness.status == "failed":
            findings.append(Finding("wrong-result", line, "error", self.correctness.detail))
        if launch_estimate is not None and execution.counts is not None:
            findings += cost_findings(execution.counts, launch_estimate, self.target, line)
        return findings

    def _untouched(self, execution: LaunchExecution) -> list[Finding]:
        """Return a finding where a launch leaves nearly all of its largest tensor alone: a size does not fit it. Where
        the launch reaches beyond that tensor, the finding about that says so."""
        counts = execution.counts
        if counts is None or not counts.tensor_bytes or not counts.sampled:
            return []
        name, whole = max(counts.tensor_bytes.items(), key=lambda tensor: tensor[1])
        sectors = counts.unique_load_sectors.get(name, 0) + counts.unique_store_sectors.get(name, 0)
        touched = sectors * SECTOR_BYTES * counts.programs / counts.sampled
        beyond = {f.tensor for e in (*self.executions, *self.checks) for f in e.faults}
        if whole < _LARGE or touched >= _LITTLE * whole or name in beyond:
            return []
        part = hints.size(touched) if touched else "nothing"
        message = (
            f"With the inferred arguments the launch touches {part} of the {hints.size(whole)} of "
            f"{name}: if it is to work on all of it, a size among them does not fit."
        )
        return [Finding("inferred-size", self.kernel.line, "information", message)]

    def _lines(self, execution: LaunchExecution, launch_estimate: LaunchEstimate | None) -> list[LineCost]:
        lines: list[LineCost] = []
        if execution.counts is not None:
            lines = hints.line_costs(execution, execution.counts)
        if self.compiled is not None:
            lines = hints.with_code(lines, self.compiled)
        if launch_estimate is not None and execution.counts is not None:
            lines = hints.with_hints(lines, execution.counts, self.compiled, launch_estimate)
        if self.chosen is not None:
            lines.insert(0, self.chosen.line(self.configurations, len(self.tried), self.kernel.line))
        return lines

    def _estimate(self, execution: LaunchExecution) -> LaunchEstimate | None:
        counts = execution.counts
        if counts is None or counts.sampled < 1:
            return None
        return estimate(counts, self.compiled, self.target)

    def _cost(self, execution: LaunchExecution) -> float:
        """Return the estimated time of a launch in us, below all others where it has none."""
        launch_estimate = self._estimate(execution)
        return -1.0 if launch_estimate is None else launch_estimate.latency.us or 0.0

    def _each_launch(self) -> tuple[LaunchTime | None, ...]:
        """Return the times of the launches that were compiled."""
        times: list[LaunchTime | None] = []
        for number, execution in enumerate(self.executions):
            counts, compiled = execution.counts, self.each.get(number)
            if compiled is None or compiled.problem or counts is None or counts.sampled < 1:
                times.append(None)
                continue
            share = time_at_scale(counts, compiled, self.target)
            latency = estimate(counts, compiled, self.target).latency
            at_scale = Latency(share.value, share.low, share.high, share.known)
            times.append(LaunchTime(largest_tensor(execution.launch), latency, at_scale))
        return tuple(times)

    def _all_launches(self) -> Quantity | None:
        """Return the time of all launches together. None of one alone, or where one has no estimate."""
        estimates = [self._estimate(e) for e in self.executions]
        times = [m.latency for m in estimates if m is not None and m.latency.us is not None]
        if self.chosen is not None or not 1 < len(self.executions) == len(times):
            return None
        ends = [
            sum(t or 0.0 for t in end)
            for end in zip(*((t.us, t.low_us, t.high_us) for t in times), strict=True)
        ]
        return estimated(ends[0], ends[1], ends[2], "us")
