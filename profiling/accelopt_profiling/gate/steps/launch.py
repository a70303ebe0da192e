"""The step ``gate.launch``: find out whether the target can compile and launch what the candidate launches for the
problem's own inputs. It comes last: the candidate's code runs once more, when nothing is left that it could change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os import times
from typing import Any

from accelopt_profiling.comparison.inplace_outputs import with_inplace_outputs
from accelopt_profiling.gate.case_files import case_folder, own_check_of, saved_arguments, saved_call
from accelopt_profiling.gate.observe.emulation import TritonSeen, emulation
from accelopt_profiling.gate.observe.interpretation import whole
from accelopt_profiling.gate.step_schemas import LaunchResult, StepParams
from accelopt_profiling.gate.steps.wide_launches import wide_launches
from accelopt_profiling.gate.verdict import Reason
from accelopt_profiling.measurement import Finding, Launchability
from accelopt_profiling.problems.call import perform
from accelopt_profiling.quantity import Known
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.usercode import load_module, user_errors

#: Makes the call; returns what ended it early, None where nothing did.
_Call = Callable[[], StepFailedError | None]


def launch(context: StepContext, params: StepParams) -> LaunchResult:
    """Make the first case's call once more, and ask the target's compiler or an emulation of its limits."""
    folder = case_folder(context, 0)
    if not (folder / "call").is_dir():
        return LaunchResult(Launchability(detail="the problem's own sizes are too large for a check"))
    with emulation(params.dialect, params.target):
        module = load_module(context, own_check=own_check_of(context, params.cases))
        arguments = saved_arguments(folder)

    def call() -> StepFailedError | None:
        case_call = saved_call(context, 0)
        perform_call = partial(perform, module, case_call.call, arguments, context.source.kernel)
        try:
            with user_errors(context):
                with_inplace_outputs(perform_call, arguments, case_call.written)
        except StepFailedError as failed:
            return failed
        return None

    started = _processor_seconds()
    result = (_nki if params.dialect == "nki" else _triton)(params, call)
    result = replace(result, wide=wide_launches(context, params, module))
    return replace(result, busy=_processor_seconds() - started)


def _processor_seconds() -> float:
    """Return what this process and the compilers that it waited for have taken."""
    return sum(times()[:4])


def _triton(params: StepParams, call: _Call) -> LaunchResult:
    # all programs in their order, since one of a sample may wait for another one without end
    plan = replace(whole(params.budget), most=params.budget.interpret_work)
    with emulation(params.dialect, params.target, plan) as observation:
        assert isinstance(observation, TritonSeen)
        failed = call()
        return _compiled(
            observation.session.executions, observation.session.target, params.budget.compiled, failed
        )


def _compiled(
    executions: Sequence[Any], target: Any, most: int, failed: StepFailedError | None
) -> LaunchResult:
    """Compile each kind of launch, up to ``most``. Of what was autotuned one configuration has to do."""
    from accelopt_profiling.triton.compilation.compile import compile_launch
    from accelopt_profiling.triton.estimation.autotune import tried_for
    from accelopt_profiling.triton.findings import problem_finding

    kinds: dict[str, tuple[int, list[Any]]] = {}
    for execution in executions:
        if not execution.tuning:
            ways = [e.launch for e in tried_for(execution, executions)] or [execution.launch]
            kinds.setdefault("; ".join(map(_kind, ways)), (execution.launch.line, ways))
    findings: list[Finding] = []
    unknown = "" if kinds else "it launched nothing where it was compiled"
    if len(kinds) > most:
        unknown = f"only {most} of its {len(kinds)} kinds of launches were compiled"
    for line, ways in list(kinds.values())[:most]:
        problems = []
        for way in ways[:most]:
            problem = compile_launch(way, target).problem
            if problem is None:
                break
            problems.append(problem)
        else:
            refused = [p for p in problems if p.refused]
            if len(refused) == len(problems) == len(ways):
                findings.append(problem_finding(refused[0], line))
            else:
                unknown = next(
                    (p.message for p in problems if not p.refused), "it has too many configurations"
                )
    return _answer(findings, Known.COMPILED, unknown, failed)


def _kind(launch: Any) -> str:
    return repr((launch.line, launch.name, launch.constants, launch.signature, launch.attrs, launch.options))


def _nki(params: StepParams, call: _Call) -> LaunchResult:
    from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError
    from accelopt_profiling.nki.install import emulated
    from accelopt_profiling.nki.report import crowded_banks
    from accelopt_profiling.nki.time_model.hardware import hardware
    from accelopt_profiling.nki.time_model.schedule import prepare

    machine = hardware(params.target)
    with emulated(limits=machine.limits, sdk=False) as observation:  # with values: host code may look at them
        failed = call()
    findings = []
    cause = failed and failed.__cause__
    if isinstance(cause, KernelFaultError) and cause.code == "capacity":
        findings.append(Finding("capacity", cause.line, "error", cause.message))
    traces = [m.trace for m in observation.machines if m.trace.instructions]
    for trace in traces:
        program = prepare(trace.instructions, machine, machine.compiler_of(trace.dialect))
        findings += crowded_banks(program.residency)
    unknown = "" if traces else "no kernel ran in an emulation of the target"
    return _answer(findings, Known.EXECUTED, unknown, failed)


def _answer(
    findings: list[Finding], certainty: Known, unknown: str, failed: StepFailedError | None
) -> LaunchResult:
    if findings:
        reasons = [Reason(f.code, f"{f.message} (line {f.line})") for f in dict.fromkeys(findings)]
        return LaunchResult(Launchability("no", certainty), reasons)
    if failed is not None:
        unknown = f"its call did not come to its end there ({failed.error.message.removesuffix('.')})"
    return LaunchResult(Launchability(detail=unknown) if unknown else Launchability("yes", certainty))
