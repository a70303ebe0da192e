"""A file that runs its own kernels: in a ``__main__`` block, in its statements, tests or benchmarks.

There is no reference. A profile runs the file, and the emulation watches its launches. To check a candidate, the calls
that the original's own run makes of its functions are recorded, and candidate and original get the same arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from accelopt_profiling.problems.discovery.script_detection import own_runs
from accelopt_profiling.problems.discovery.search import ProblemSearch
from accelopt_profiling.problems.layout import SCALE, ProblemLayout
from accelopt_profiling.problems.ref import ProblemLookup, ProblemRef

if TYPE_CHECKING:
    from accelopt_profiling.problems.loading.own_calls import RecordedRun
    from accelopt_profiling.problems.problem import Call, Problem
    from accelopt_profiling.step_context import StepContext


def _find(search: ProblemSearch) -> ProblemLookup | None:
    runs = own_runs(search.source.tree, search.file)
    if not runs:
        return None
    ways = [
        *(["its __main__ block"] if runs.main else []),
        *(["its own statements"] if runs.module else []),
        *runs.functions,
    ]
    return search.lookup("selfrun", None, f"the file runs itself: {', '.join(ways)}", options=asdict(runs))


def _load(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    """Return the file as it runs itself.

    Without the kernel's module (in the gate), the original's recorded calls.
    """
    from accelopt_profiling.problems.call import seed_everything
    from accelopt_profiling.problems.problem import Call, Problem

    if kernel_module is None:
        return _recorded(context, ref)

    def inputs(seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        seed_everything(seed)
        return []

    # the module's own statements ran when it was imported
    path = str(context.kernel_path) if ref.options.get("main") else ""
    script = Call(path, "script", methods=[str(name) for name in ref.options.get("functions", [])])
    return Problem(inputs, lambda inputs: (script, []), file=context.source.kernel)


def _recorded(context: StepContext, ref: ProblemRef) -> Problem:
    """Repeat the original's calls of its functions: inputs are ``[function name, argument, ...]`` of one call.

    The reference is the original function itself, which cannot be run in float64. Of a function that was called for
    gradients these are computed and compared too.
    """
    from accelopt_profiling.problems.call import copied, run_problem, seed_everything
    from accelopt_profiling.problems.loading.own_calls import record_calls
    from accelopt_profiling.problems.problem import Call, Problem

    recorded = cache(partial(record_calls, context, ref.options))

    def inputs(seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        name, *arguments = recorded().calls[int((shape or {}).get("call", 0))]
        seed_everything(seed)
        return [name, *(copied(v) for v in arguments)]

    def call(inputs: list[Any]) -> tuple[Call, list[Any]]:
        name, of = str(inputs[0]), recorded()
        return Call(name, backward=name in of.differentiated, own_check=of.own_check), inputs[1:]

    problem = Problem(inputs, call, own_reference=False, file=context.source.kernel)
    problem.reference = lambda inputs: run_problem(problem, recorded().module, inputs)
    problem.shapes = _FurtherCalls(recorded)
    return problem


class _FurtherCalls(Sequence[Mapping[str, Any]]):
    """The cases of a recorded run, which is made when they are first asked for."""

    def __init__(self, recorded: Callable[[], RecordedRun]) -> None:
        self._recorded = recorded

    def __len__(self) -> int:
        return max(0, len(self._recorded().calls) - 1)

    def __getitem__(self, number: Any) -> Any:
        return [{"call": n} for n in range(1, len(self) + 1)][number]


_ABOUT = """\
A `__main__` block, top-level statements, tests or benchmarks that launch the kernels. For a profile the file is run
and its launches are observed. For the gate, the calls that the original makes of its own functions are recorded and
repeated with the candidate; the original is then the reference, in its own precision. If the run fails after its
launches (its own `assert`, something that needs the device), the costs are kept and the failure is reported. Of a
`perf_report` the first size is run, and the largest for its cost alone, on zeros: that one is the headline. Large
baselines in PyTorch are not computed for a profile: results of float tensors of more than 64 MB, and of products of
more than 8 GFLOP, are zeros, and the file's comparisons with them tell nothing.

A check of the file's own that fails with the original here (it may compare with a sum in half precision on a CPU)
ends what is recorded, and the statements of a candidate that fails the same check at the same place. A candidate that
fails another one, or has one more, is refused. If the file launches nothing here, arguments are inferred as for a
file with no problem at all, and `inferred-problem` says so."""

_MAIN = """

if __name__ == "__main__":
    x = torch.randn(1000, device="cuda")
    torch.testing.assert_close(scale(x), 2 * x)
"""

LAYOUT = ProblemLayout(
    "selfrun", "A file that runs itself", _load, _find,
    about=_ABOUT, example={"k.py": SCALE + _MAIN}, referenced=False, runs_itself=True,
)  # fmt: skip
