"""Load a recording: the calls that a test, a benchmark or a program made of a kernel file's functions.

There is no reference besides the original: a profile checks nothing, and a candidate has to do what the original does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from accelopt_profiling.problems.loading.call import perform, seed_everything, to_device
from accelopt_profiling.problems.problem import Call, Problem, ProblemError
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.recording.recorded_call import Recording, covering, parse_recording
from accelopt_profiling.recording.tensor_fill import fill
from accelopt_profiling.worker.step_context import StepContext
from accelopt_profiling.worker.usercode import load_module


class RecordingProblem(Problem):
    """Repeats recorded calls. Inputs are the numbers of the calls as text, then the storages of their tensors.

    The main case makes the headline call of each kernel, one after another; the others are ``shapes``. In float64 the
    original cannot run, and no value of a recording depends on what the kernels are.
    """

    own_reference = False

    def __init__(self, context: StepContext, recording: Recording, file: str, checked: bool) -> None:
        self._context, self._recording, self._file, self._checked = context, recording, file, checked
        self._main = covering(recording.calls)
        others = [n for n in range(len(recording.calls)) if n not in self._main]
        self.shapes: Sequence[Mapping[str, Any]] = [{"call": n} for n in others]
        of = f"the headline of {len(recording.calls)} recorded calls"
        self.headline = of if len(self._main) == 1 else f"{of} for each kernel"
        self._original: ModuleType | None = None

    def inputs(self, seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        import torch

        seed_everything(seed)
        case = self._main if shape is None else [int(shape["call"])]
        storages = [s for n in case for s in self._recording.calls[n].storages]
        try:
            made = [fill(storage, seed + n) for n, storage in enumerate(storages)]
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            message = f"The recording {self._file} cannot be read: {error}; record it again."
            raise ProblemError("problem-invalid", message, self._file) from error
        numbers = " ".join(map(str, case))
        return [numbers, *((to_device(m) for m in made) if torch.cuda.is_available() else made)]

    def reference(self, inputs: list[Any]) -> list[Any] | None:
        if not self._checked:
            return None
        if self._original is None:
            self._original = load_module(self._context)
        return self.run(self._original, inputs)

    def run(self, module: ModuleType, inputs: list[Any]) -> list[Any]:
        call, storages = self.call(inputs)
        return perform(module, call, storages, self._file)

    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        """Return the calls that the inputs are for, and the storages."""
        chosen = [self._recording.calls[int(n)] for n in str(inputs[0]).split()]
        recorded: list[dict[str, Any]] = [
            {
                "entry": call.entry, "arguments": call.arguments, "keywords": call.keywords, "grid": call.grid,
                "storages": len(call.storages),
            }
            for call in chosen
        ]  # fmt: skip
        return Call(chosen[0].entry, "recorded", recorded=recorded), inputs[1:]


def load_recording_problem(
    context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None
) -> Problem:
    """Load a recording, a file of the job. Without the kernel's module (in the gate) the original is the reference.

    Raises:
        ProblemError: it is missing or cannot be read.
    """
    file = ref.path or ""
    try:
        recording = parse_recording(context.source.files[file])
    except (KeyError, ValueError) as error:
        message = f"The recording {file} cannot be read: {error}; record it again."
        raise ProblemError("problem-invalid", message, file) from error
    return RecordingProblem(context, recording, file, kernel_module is None)
