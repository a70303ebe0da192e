"""The step ``gate.launch``: find out whether the target can compile and launch what the candidate launches for the
problem's own inputs. It comes last: the candidate's code runs once more, when nothing is left that it could change.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from accelopt_profiling.gate.observe.emulation import emulation
from accelopt_profiling.gate.observe.interpretation import MOST_WORK
from accelopt_profiling.gate.step_schemas import LaunchParams, LaunchResult
from accelopt_profiling.gate.steps.case_files import case_folder, own_check_of, saved_arguments, saved_call
from accelopt_profiling.gate.verdict import Reason
from accelopt_profiling.measurement import Finding, Launchability
from accelopt_profiling.problems.loading.call import perform
from accelopt_profiling.quantity import Known
from accelopt_profiling.triton.interpreter.sampling import InterpretationPlan
from accelopt_profiling.worker.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.usercode import load_module, user_errors

#: So many kinds of launches are compiled, and so many configurations of an autotuner until one can be launched.
MOST_COMPILED = 16


def launch(context: StepContext, params: LaunchParams) -> LaunchResult:
    """Make the first case's call once more, and ask the target's compiler or an emulation of its limits."""
    folder = case_folder(context, 0)
    if not (folder / "call").is_dir():
        return LaunchResult(Launchability(detail="the problem's own sizes are too large for a check"))
    with emulation(params.dialect, params.target):
        module = load_module(context, own_check=own_check_of(context, params.cases))
        arguments = saved_arguments(folder)

    def call() -> None:
        with user_errors(context):
            perform(module, saved_call(context, 0).call, arguments, context.source.kernel)

    return (_nki if params.dialect == "nki" else _triton)(params.target, call)


def _triton(target: str, call: Callable[[], None]) -> LaunchResult:
    from accelopt_profiling.triton.capture.install import emulated

    plan = InterpretationPlan(most=MOST_WORK)
    with emulated(target, mode="capture", count=False, plan=plan) as session:
        with contextlib.suppress(StepFailedError):  # its values are of no use here: what it launched is known
            call()
        return _compiled(session.executions, session.target)


def _compiled(executions: Sequence[Any], target: Any) -> LaunchResult:
    """Compile each kind of launch; of what was autotuned one configuration has to do, as the others are passed over."""
    from accelopt_profiling.triton.compilation.compile import compile_launch
    from accelopt_profiling.triton.estimation.autotune import tried_for
    from accelopt_profiling.triton.findings import problem_finding

    kinds: dict[str, tuple[int, list[Any]]] = {}
    for execution in executions:
        if not execution.tuning:
            ways = [e.launch for e in tried_for(execution, executions)] or [execution.launch]
            kinds.setdefault("; ".join(map(_kind, ways)), (execution.launch.line, ways))
    found: list[Finding] = []
    unknown = "" if kinds else "it launched nothing where it was compiled"
    for line, ways in list(kinds.values())[:MOST_COMPILED]:
        problems = []
        for way in ways[:MOST_COMPILED]:
            problem = compile_launch(way, target).problem
            if problem is None:
                break
            problems.append(problem)
        else:
            refused = [p for p in problems if p.refused]
            if len(refused) == len(problems) == len(ways):
                found.append(problem_finding(refused[0], line))
            else:
                unknown = next(
                    (p.message for p in problems if not p.refused), "it has too many configurations"
                )
    return _answer(found, Known.COMPILED, unknown)


def _kind(launch: Any) -> str:
    return repr((launch.line, launch.name, launch.constants, launch.signature, launch.attrs, launch.options))


def _nki(target: str, call: Callable[[], None]) -> LaunchResult:
    from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError, ValuesNeededError
    from accelopt_profiling.nki.install import emulated
    from accelopt_profiling.nki.report import crowded_banks
    from accelopt_profiling.nki.time_model.hardware import hardware
    from accelopt_profiling.nki.time_model.schedule import prepare

    machine = hardware(target)
    cause: BaseException | None = None
    for mode in ("trace", "full"):  # with values where the kernel's loops depend on them
        with emulated(mode, limits=machine.limits, sdk=False) as seen:
            try:
                call()
                cause = None
            except StepFailedError as failed:
                cause = failed.__cause__
        if not isinstance(cause, ValuesNeededError):
            break
    found = []
    if isinstance(cause, KernelFaultError) and cause.code == "capacity":
        found.append(Finding("capacity", cause.line, "error", cause.message))
    for trace in (m.trace for m in seen.machines if m.trace.instructions):
        program = prepare(trace.instructions, machine, machine.compiler_of(trace.dialect))
        found += crowded_banks(program.residency)
    ran = any(m.trace.instructions for m in seen.machines)
    return _answer(found, Known.EXECUTED, "" if ran else "no kernel ran in an emulation without values")


def _answer(found: list[Finding], known: Known, unknown: str) -> LaunchResult:
    if found:
        reasons = [Reason(f.code, f"{f.message} (line {f.line})") for f in dict.fromkeys(found)]
        return LaunchResult(Launchability("no", known), reasons)
    return LaunchResult(Launchability(detail=unknown) if unknown else Launchability("yes", known))
