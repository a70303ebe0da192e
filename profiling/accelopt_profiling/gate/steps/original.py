"""The step ``gate.original``: run the original kernel at shapes and on values that the gate chose, after the
candidate's process has ended. A candidate has to do there what the original does, and no more.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from accelopt_profiling.comparison.inplace_outputs import changed_inputs, with_inplace_outputs
from accelopt_profiling.comparison.memory import fingerprint, overlapping, poisoned_memory, with_gaps
from accelopt_profiling.comparison.saved_values import NotCarriedError, digest, save_values
from accelopt_profiling.gate.case_files import (
    beside,
    case_folder,
    drawn_cases,
    problem_errors,
    problem_files,
    saved_arguments,
    saved_call,
)
from accelopt_profiling.gate.observe.emulation import emulation, neutralised
from accelopt_profiling.gate.observe.hostwork import HostWork
from accelopt_profiling.gate.observe.interpretation import of_case, whole
from accelopt_profiling.gate.observe.other_devices import other_devices
from accelopt_profiling.gate.observe.process_state import CallerState
from accelopt_profiling.gate.observe.salted_hash import SaltedHashes
from accelopt_profiling.gate.step_schemas import CaseCall, OriginalParams, OriginalResult
from accelopt_profiling.gate.steps.wide_launches import wide_launches
from accelopt_profiling.jobs import StepError
from accelopt_profiling.problems.call import call_entry, listed, perform
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.worker.usercode import load_module, user_errors


def original(context: StepContext, params: OriginalParams) -> OriginalResult:
    """Run the original at derived shapes and on values of which it decides what is asked, and once without its kernels
    to see what its host code computes.

    Raises:
        StepFailedError: the original cannot even be loaded.
    """
    if params.same:
        return OriginalResult()
    work, caller = HostWork(), CallerState()
    least = replace(params.budget, interpret_work=0)
    one: bool | None = None
    repeatable: bool | None = None
    changed: set[int] = set()
    aliases: list[list[str]] = []

    def observe(before: list[bytes], arguments: list[Any], outputs: list[Any], case_call: CaseCall) -> None:
        changed.update(changed_inputs(before, arguments, case_call.written))
        aliases.extend(a for a in overlapping(arguments, outputs) if a not in aliases)

    with problem_files(context, params.source) as own:
        hashes = SaltedHashes(str((own.folder / "src").resolve()) + os.sep)
        with emulation(params.dialect, params.target), problem_errors(own, "loading the original: "):
            module = load_module(own)
        for index in drawn_cases(context, params.cases):
            folder = case_folder(context, index)
            case_call = saved_call(context, index)
            answers = case_call.derived or case_call.compared or params.measured
            if answers or case_call.twice:
                with emulation(params.dialect, params.target):
                    arguments = saved_arguments(folder)
            if answers:
                if (folder / "original").exists():
                    raise StepFailedError(
                        StepError("tampered", "The candidate wrote into the folder of the answers.")
                    )
                with (
                    contextlib.suppress(StepFailedError, NotCarriedError),
                    emulation(params.dialect, params.target, whole(params.budget)) as observation,
                    poisoned_memory(),
                    user_errors(own),
                ):
                    before = [fingerprint(with_gaps(a)) for a in arguments]
                    outputs = with_inplace_outputs(
                        partial(perform, module, case_call.call, arguments, own.source.kernel),
                        arguments,
                        case_call.written,
                    )
                    observation.raise_faults()
                    save_values(folder / "original", outputs)
                    observe(before, arguments, outputs, case_call)
            elif case_call.twice and params.dialect != "numpy":
                if not _equal_files(folder, "outputs", "again", "late"):
                    repeatable = _repeatable(own, params, module=module, case_call=case_call, folder=folder)
                with (
                    contextlib.suppress(StepFailedError),
                    neutralised(
                        params.dialect,
                        params.target,
                        of_case(None, index, least),
                        work.pausing,
                    ),
                    poisoned_memory(),
                    work.counting(),
                    user_errors(own),
                ):
                    before = [fingerprint(with_gaps(a)) for a in arguments]
                    result = call_entry(
                        module,
                        case_call.call,
                        work.marked(arguments),
                        own.source.kernel,
                        around=caller.around,
                    )
                    one = not isinstance(result, (list, tuple))
                    observe(before, arguments, listed(result), case_call)
            if params.dialect == "triton":
                _in_other_ways(own, params, case_call, folder)
        wide = wide_launches(context, params, module)
    return OriginalResult(
        work.total,
        sorted(caller.changed),
        returns_one=one,
        repeatable=repeatable,
        inputs_changed=sorted(changed),
        aliases=aliases,
        wide=wide,
        salted=hashes.used,
    )


def _in_other_ways(own: StepContext, params: OriginalParams, case_call: CaseCall, folder: Path) -> None:
    """Run the original as the candidate was, where the candidate's outputs are others then."""
    ways: dict[str, tuple[str | GpuTarget, int | None]] = {"reordered": (params.target, params.loop_order)}
    ways |= {name: (device, None) for name, device in other_devices(params.target).items()}
    most = params.budget.case_work(1)  # a program may wait for one that comes later
    for name, (device, order) in ways.items():
        if not (folder / name).is_dir() or _equal_files(folder, "outputs", name):
            continue
        with (
            contextlib.suppress(StepFailedError, NotCarriedError),
            emulation(
                params.dialect, device, replace(whole(params.budget), most=most), order=order
            ) as observation,
            poisoned_memory(),
            user_errors(own),
        ):
            arguments = saved_arguments(folder)
            outputs = with_inplace_outputs(
                partial(perform, load_module(own), case_call.call, arguments, own.source.kernel),
                arguments,
                case_call.written,
            )
            observation.raise_faults()
            save_values(folder / beside(name), outputs)


def _equal_files(folder: Path, *names: str) -> bool:
    """Check whether the candidate's runs left the same files."""
    return len({digest(folder / name) for name in names if (folder / name).is_dir()}) < 2


def _repeatable(
    own: StepContext, params: OriginalParams, module: ModuleType, case_call: CaseCall, folder: Path
) -> bool | None:
    """Check whether two runs of the original on the same inputs give the same bits; None where one fails."""
    runs: list[list[bytes]] = []
    built: dict[str, Any] = {}
    with contextlib.suppress(StepFailedError):
        for _ in range(2):
            with (
                emulation(params.dialect, params.target, whole(params.budget)) as observation,
                poisoned_memory(),
                user_errors(own),
            ):
                arguments = saved_arguments(folder)
                outputs = perform(
                    module, case_call.call, arguments=arguments, file=own.source.kernel, built=built
                )
                observation.raise_faults()
                runs.append([fingerprint(v) for v in [*outputs, *arguments]])
        return runs[0] == runs[1]
    return None
