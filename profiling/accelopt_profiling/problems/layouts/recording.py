"""A recording: the calls that a test, a benchmark or a program made of a kernel file's functions.

There is no reference besides the original: a profile checks nothing, and a candidate has to do what the original does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from accelopt_profiling.problems.discovery.search import ProblemFile, ProblemSearch
from accelopt_profiling.problems.layout import ProblemLayout
from accelopt_profiling.problems.layouts.gpumode import task_files
from accelopt_profiling.problems.ref import ProblemLookup, ProblemRef
from accelopt_profiling.recording.recorded_call import (
    covering,
    is_recording,
    parse_recording,
    recording_path,
)

if TYPE_CHECKING:
    from accelopt_profiling.problems.problem import Problem
    from accelopt_profiling.step_context import StepContext


def _find(search: ProblemSearch) -> ProblemFile | None:
    file = recording_path(search.path)
    return ProblemFile(file, f"recorded, in {file.name}") if os.path.lexists(file) else None


def _read(search: ProblemSearch, file: ProblemFile) -> ProblemLookup | None:
    if not is_recording(file.data):
        return None
    try:
        parse_recording(file.text)
    except ValueError as error:
        message = f"The problem {file.spelling or file.path.name} cannot be used: {error}."
        return search.fault("problem-invalid", message, file.line)
    return search.lookup(
        "recording", file.path, file.origin, file.text, entry=file.entry, also=task_files(search)
    )


def _load(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    """Repeat the calls.

    Inputs are their numbers as text, then the storages of their tensors.

    The main case makes the headline call of each kernel, one after another; the others are ``shapes``. In float64 the
    original cannot run, and no value of a recording depends on what the kernels are.
    """
    import torch

    from accelopt_profiling.problems.call import seed_everything, to_device
    from accelopt_profiling.problems.loading.python_problem import compare_with_original
    from accelopt_profiling.problems.problem import Call, Problem, ProblemError
    from accelopt_profiling.recording.tensor_fill import fill

    file = ref.path or ""

    def unreadable(error: Exception) -> ProblemError:
        message = f"The recording {file} cannot be read: {error}; record it again."
        return ProblemError("problem-invalid", message, file)

    try:
        calls = parse_recording(context.source.files[file]).calls
    except (KeyError, ValueError) as error:
        raise unreadable(error) from error
    main = covering(calls)

    def inputs(seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        seed_everything(seed)
        case = main if shape is None else [int(shape["call"])]
        storages = [s for n in case for s in calls[n].storages]
        try:
            values = [fill(storage, seed + n) for n, storage in enumerate(storages)]
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise unreadable(error) from error
        numbers = " ".join(map(str, case))
        return [numbers, *((to_device(m) for m in values) if torch.cuda.is_available() else values)]

    def call(inputs: list[Any]) -> tuple[Call, list[Any]]:
        chosen = [calls[int(n)] for n in str(inputs[0]).split()]
        recorded: list[dict[str, Any]] = [
            {
                "entry": call.entry, "arguments": call.arguments, "keywords": call.keywords, "grid": call.grid,
                "storages": len(call.storages),
            }
            for call in chosen
        ]  # fmt: skip
        return Call(chosen[0].entry, "recorded", recorded=recorded), inputs[1:]

    headline = f"the headline of {len(calls)} recorded calls" + " for each kernel" * (len(main) > 1)
    shapes = [{"call": n} for n in range(len(calls)) if n not in main]
    problem = Problem(inputs, call, shapes=shapes, headline=headline, file=file)
    return compare_with_original(problem, context, kernel_module)


_ABOUT = """\
`<name>_recording.json` beside the kernel file, which `accelopt record` writes ([Write a
problem](../how-to/problems.md#3-a-recording))."""

LAYOUT = ProblemLayout(
    "recording", "A recording", load=_load, find=_find, read=_read, about=_ABOUT, referenced=False
)
