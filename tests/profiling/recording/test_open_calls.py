"""Functions of kernel files report their calls and do what they did before."""

from __future__ import annotations

import textwrap
import traceback
from types import SimpleNamespace

import numpy as np
import pytest

from accelopt_profiling.recording.observer import candidates
from accelopt_profiling.recording.open_calls import OpenCalls, instrument

SOURCE = textwrap.dedent(
    '''
    """A module."""
    LAUNCHED = []

    def jit(f):
        return f

    @jit
    def kernel(x):
        return x

    def outer(x, *more, scale=2.0, **rest):
        """Documented."""
        x = x + 1
        return _inner(x * scale)

    def _inner(x):
        return note(x)

    def generator(x):
        yield x

    def fails(x):
        global LAUNCHED
        raise ValueError(x)

    class Function:
        @staticmethod
        def forward(ctx, x):
            return note(x)
    '''
)


@pytest.fixture
def calls() -> OpenCalls:
    return OpenCalls()


def module(calls: OpenCalls) -> SimpleNamespace:
    stacks: list[list[tuple[str, object, list[str]]]] = []

    def note(x: object) -> object:
        stacks.append([(c.name, dict(c.arguments), c.keywords) for c in calls.stack()])
        return x

    names = {
        "__name__": "m", "__accelopt_enter__": calls.enter, "__accelopt_leave__": calls.leave, "note": note,
    }  # fmt: skip
    exec(instrument(SOURCE.encode(), "m.py"), names)  # noqa: S102  (the text above)
    return SimpleNamespace(**names, seen=stacks)


def test_a_call_keeps_the_arguments_that_came_in(calls: OpenCalls) -> None:
    loaded = module(calls)
    assert loaded.outer(1, 5, scale=3.0, extra="e") == 6.0
    outer, inner = loaded.seen[0]
    assert outer == ("outer", {"x": 1, "argument 2": 5, "scale": 3.0, "extra": "e"}, ["scale", "extra"])
    assert inner == ("_inner", {"x": 6.0}, [])
    assert loaded.outer.__doc__ == "Documented."
    assert calls.stack() == []


def test_public_functions_come_before_private_ones_from_the_outside(calls: OpenCalls) -> None:
    names = ["_wrapper", "test_outer", "outer", "Function.forward", "_inner"]
    for name in names:
        calls.enter("m.py", name, [], None, [], None)
    calls.enter("other.py", "elsewhere", [], None, [], None)
    assert [c.name for c in candidates(calls.stack(), "m.py")] == [
        "outer",
        "Function.forward",
        "_wrapper",
        "_inner",
    ]


def test_an_error_passes_through_with_its_line(calls: OpenCalls) -> None:
    loaded = module(calls)
    with pytest.raises(ValueError, match="9") as caught:
        loaded.fails(9)
    line = SOURCE.splitlines().index("    raise ValueError(x)") + 1
    assert traceback.extract_tb(caught.value.__traceback__)[-1].lineno == line
    assert calls.stack() == []


def test_a_call_in_a_call_with_equal_arguments_ends_alone(calls: OpenCalls) -> None:
    outer, inner = (
        calls.enter("m.py", "f", [("x", np.ones(2))], None, [], None) for _ in range(2)
    )  # fmt: skip
    calls.leave(inner)
    assert calls.stack() == [outer]


def test_methods_are_named_with_their_class_and_kernels_left_alone(calls: OpenCalls) -> None:
    loaded = module(calls)
    loaded.Function.forward(None, 4)
    assert loaded.seen[0][0][0] == "Function.forward"
    assert loaded.kernel(3) == 3
    assert list(loaded.generator(2)) == [2]
    assert len(loaded.seen) == 1
