"""Call a loaded candidate: on fresh or reused memory, with its outputs saved and its behaviour recorded."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from accelopt_profiling.comparison.inplace_outputs import changed_inputs, with_inplace_outputs
from accelopt_profiling.comparison.memory import (
    aligned,
    arrays_of,
    fill_in_place,
    fingerprint,
    is_plain,
    overlapping,
    poisoned_memory,
    same_layout,
    with_gaps,
)
from accelopt_profiling.comparison.saved_values import NotCarriedError, digest, link_values, save_values
from accelopt_profiling.gate.case_files import (
    ABOUT,
    INITIAL_FILE,
    case_folder,
    saved_arguments,
    saved_call,
)
from accelopt_profiling.gate.observe.autotuning import AutotuneTurns
from accelopt_profiling.gate.observe.dispatch_mode import poisoned_tensors
from accelopt_profiling.gate.observe.emulation import Seen, empty_launches, emulation
from accelopt_profiling.gate.observe.interpretation import (
    ENOUGH,
    known_share,
    of_case,
    planned_share,
    whole,
)
from accelopt_profiling.gate.observe.patch_detection import SharedObjects
from accelopt_profiling.gate.observe.process_state import CallerState
from accelopt_profiling.gate.step_schemas import CaseCall, PlanResult, RunCase, RunParams
from accelopt_profiling.jobs import StepError
from accelopt_profiling.problems.call import call_entry, copied, listed
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.triton.interpreter.sampling import InterpretationPlan
from accelopt_profiling.worker.usercode import user_errors


class TooLittleKnownError(Exception):
    """The programs that were interpreted leave too little of the outputs known: all have to be."""


class LoadedCandidate:
    """The loaded candidate.

    ``plan`` says how much of each case is interpreted. ``patched`` and ``attributes`` grow with what its calls do,
    ``calls`` counts them; cases in ``whole`` are interpreted whole, whatever the plan says.
    """

    def __init__(
        self, context: StepContext, params: RunParams, module: ModuleType, plan: PlanResult | None
    ) -> None:
        self.context, self.params, self.plan = context, params, plan
        self.module = self._without_help(module)
        self.patched: list[str] = []
        self.attributes: list[str] = []
        self.calls = 0
        self.moved_only = False
        self.made_elsewhere = 0  # elements of an output that no launch left
        self.returns_one: bool | None = None
        self.caller = CallerState()
        self.may_reorder = self.asks_device = False
        self.races: list[str] = []
        self.lanes: list[str] = []
        self.configurations = AutotuneTurns()
        self.whole: set[int] = set()
        self._plans: dict[int, InterpretationPlan] = {}
        self._digests: dict[int, str] = {}
        self._earlier: list[Any] | None = None

    def _without_help(self, module: ModuleType) -> ModuleType:
        for name in self.params.neutralised:
            if hasattr(module, name):
                setattr(module, name, _refuse(name))
        return module

    @contextlib.contextmanager
    def loaded_anew(self) -> Iterator[None]:
        """Have calls go to the file loaded once more, as another process does.

        Raises:
            StepFailedError: it does not load twice.
        """
        held, spec = self.module, self.module.__spec__
        assert spec is not None
        assert spec.loader is not None
        try:
            sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
            with user_errors(self.context):
                spec.loader.exec_module(module)
            self.module = self._without_help(module)
            yield
        finally:
            self.module = sys.modules[spec.name] = held

    def case_call(self, index: int) -> CaseCall:
        return saved_call(self.context, index)

    def arguments(self, index: int) -> list[Any]:
        """Load the arguments of a case into new memory, aligned as a device's."""
        folder = case_folder(self.context, index)
        with emulation(self.params.dialect, self.params.target):
            loaded = saved_arguments(folder)
            return [aligned(value) for value in loaded]

    def reused_memory(self, arguments: list[Any]) -> list[Any]:
        """Put new data at addresses that the candidate has seen before, where the layout allows."""
        if self._earlier is not None and same_layout(self._earlier, arguments):
            fill_in_place(self._earlier, arguments)
            return self._earlier
        self._earlier = arguments
        return arguments

    def interpretation(self, index: int) -> InterpretationPlan:
        """Return which programs of a case's launches are interpreted."""
        if index in self.whole:
            return whole(self.params.budget)
        if index not in self._plans:
            self._plans[index] = of_case(self.plan, index, self.params.budget)
        return self._plans[index]

    def interpret_whole(self, index: int) -> None:
        """Have a case interpreted whole from here on.

        Raises:
            StepFailedError: too many cases would be.
        """
        if len(self.whole) >= self.params.budget.whole_cases:
            message = (
                "too little of the output can be checked by interpreting some of its programs, and all take too long; "
                "smaller `shapes` of the problem help."
            )
            raise StepFailedError(StepError("not-judged", message))
        self.whole.add(index)

    def emulated(
        self,
        index: int,
        movement: bool = False,
        order: int | None = None,
        runs_tries: bool = False,
        most: int | None = None,
    ) -> Any:
        params = self.params
        plan, prefers = self.interpretation(index), self.configurations.prefers
        if most:
            plan = replace(plan, most=most)
        return emulation(
            params.dialect,
            params.target,
            plan=plan,
            movement=movement,
            prefers=prefers,
            order=order,
            runs_tries=runs_tries,
        )

    def call(
        self, index: int, arguments: list[Any], name: str, built: dict[str, Any]
    ) -> tuple[list[Any], RunCase]:
        """Make one call, save its outputs under ``name``, and record what it did to its inputs and to shared objects.

        ``built`` keeps a KernelBench model between calls (see ``problems.call.perform``).
        """
        before = [fingerprint(with_gaps(a)) for a in arguments]
        movement = name == "again"
        with self.emulated(index, movement) as observation, poisoned_memory(), poisoned_tensors():
            shared = SharedObjects()
            started = time.perf_counter()
            outputs = self.perform(index, arguments, observation, built)
            seconds = time.perf_counter() - started
            self.patched += shared.changes()
            self.configurations.chosen()
            self.may_reorder = self.may_reorder or observation.may_reorder()
            self.asks_device = self.asks_device or observation.asks_device()
            work = observation.work()
            if initial := bool(built.get("initial")):
                (case_folder(self.context, index) / INITIAL_FILE).touch()
            planned = ENOUGH * planned_share(self.plan, index)
            if name == "outputs" and index not in self.whole and known_share(outputs, observation) < planned:
                raise TooLittleKnownError
            self.save(index, name, outputs, observation)
            if movement and observation.movement is not None:
                self.moved_only = observation.movement.only
                self.made_elsewhere = observation.movement.made_elsewhere(outputs)
                self.races, self.lanes = observation.races(), observation.lanes()
        changed = sorted(changed_inputs(before, arguments, self.case_call(index).written))
        aliases = overlapping(arguments, outputs)
        outputs = [copied(v) if overlapping(arguments, [v]) else v for v in outputs]
        return outputs, RunCase(
            index, seconds, changed, aliases, launched=observation.launched(), complete=observation.complete(),
            work=work, initial=initial,
        )  # fmt: skip

    def perform(
        self,
        index: int,
        arguments: list[Any],
        observation: Seen,
        built: dict[str, Any] | None = None,
        turned: bool = False,
    ) -> list[Any]:
        """Return one call: what it returns, and what it leaves in the arguments that the reference writes to
        as well. With ``turned`` gradients are on where they are off otherwise (models), and off where they
        are on."""
        self.calls += 1
        torch = sys.modules.get("torch")
        quiet = torch.no_grad() if turned and torch is not None else contextlib.nullcontext()
        with user_errors(self.context), quiet:
            case_call = self.case_call(index)

            def call() -> list[Any]:
                returned = call_entry(
                    self.module,
                    case_call.call,
                    arguments=arguments,
                    file=self.context.source.kernel,
                    built=built,
                    gradients=turned,
                    around=self.caller.around,
                )
                self.returns_one = not isinstance(returned, (list, tuple))
                return listed(returned)

            outputs = with_inplace_outputs(call, arguments, case_call.written)
            observation.raise_faults()
        return outputs

    def call_often(self, index: int, arguments: list[Any], built: dict[str, Any], most: int) -> None:
        """Make thousands of calls whose launches do nothing, of which there are up to ``most`` a call: whatever counts
        calls, and wherever, counts these. The ``arguments`` are those of a call before: what was prepared of them is
        there.
        """
        call, file = self.case_call(index).call, self.context.source.kernel
        budget = self.params.budget
        ends = time.process_time() + budget.often_seconds
        with (
            contextlib.suppress(Exception),
            empty_launches(self.params.dialect, self.params.target, most * budget.often),
            poisoned_memory(),
        ):
            for _ in range(budget.often):
                call_entry(self.module, call, arguments=arguments, file=file, built=built)
                if time.process_time() > ends:
                    break

    def save(self, index: int, name: str, outputs: list[Any], observation: Seen, about: str = "") -> None:
        """Save outputs and send their digest before any more of the candidate's code runs. ``about`` is saved too. What
        is the same as the first outputs takes no further room."""
        self.attributes += [
            f"{type(o).__name__}.{key}" for o in outputs for key in getattr(o, "__dict__", {})
        ]
        folder: Path = case_folder(self.context, index) / name
        for place, output in arrays_of(outputs):
            if not is_plain(output):
                message = f"Output {place} is a {type(output).__qualname__}, a kind of array of its own."
                raise StepFailedError(StepError("wrong-type", message))
        try:
            save_values(folder, outputs)
        except NotCarriedError as error:
            raise StepFailedError(
                StepError("wrong-output", f"An output cannot be compared: {error}.")
            ) from error
        if about:
            (folder / ABOUT).write_text(about, encoding="utf-8")
        for output, mask in observation.known(outputs).items():
            np.save(folder / f"known-{output}.npy", mask, allow_pickle=False)
        checksum = digest(folder)
        if name == "outputs":
            self._digests[index] = checksum
        elif checksum == self._digests.get(index):
            link_values(folder, folder.parent / "outputs")
        self.context.emit({"saved": [index, name, checksum]})


def _refuse(name: str) -> Callable[..., Any]:
    def refused(*_: Any, **__: Any) -> Any:
        raise RuntimeError(
            f"the kernel called the problem's own `{name}`; a candidate has to compute the result itself"
        )

    return refused
