"""Repeat recorded calls: the arguments are put together from storages, and what the calls return is one list."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from accelopt_profiling.problems.loading.operator_call import comparable
from accelopt_profiling.problems.problem import Call, ProblemError
from accelopt_profiling.recording.value_encoding import decode


def repeat_calls(module: ModuleType, call: Call, storages: list[Any], file: str | None) -> list[Any]:
    """Make the calls of ``call.recorded`` and return the tensors and numbers that they return. All are made; what one
    raised is raised at the end.

    Raises:
        ProblemError: the kernel file lacks an entry, or no call returned anything, as those that write in place.
    """
    outputs: list[Any] = []
    failure: Exception | None = None
    first = 0
    for recorded in call.recorded:
        count = int(recorded["storages"])
        try:
            result = _made(module, recorded, storages[first : first + count], file)
            outputs += comparable(result)
        except Exception as error:  # the kernels of the other calls are still to be measured
            failure = failure or error
        first += count
    if failure is not None:
        raise failure
    if not outputs:
        raise ProblemError("problem-empty", "The recorded calls returned nothing.", file)
    return outputs


def _made(module: ModuleType, recorded: dict[str, Any], storages: list[Any], file: str | None) -> Any:
    entry = str(recorded["entry"])
    function: Any = module
    for part in entry.split("."):
        function = getattr(function, part, None)
    if function is None or not (callable(function) or recorded.get("grid")):
        message = f"The recording calls `{entry}`, which the kernel file does not define; record it again."
        raise ProblemError("problem-invalid", message, file)
    values = decode(recorded["arguments"], storages, module)
    names = list(recorded.get("keywords") or [])
    split = len(values) - len(names)
    named = dict(zip(names, values[split:], strict=True))
    if recorded.get("grid"):
        function[tuple(recorded["grid"])](*values[:split], **named)
        return None  # what a launch returns is the compiled kernel
    return function(*values[:split], **named)
