"""Kernels are found by syntax alone: how they are spelled, where they stand, what tells versions apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelopt_profiling.kernels import find_kernels, may_hold_kernels

BODY = "def k(x_ptr, n, BLOCK: tl.constexpr):\n    pass\n"

SPELLINGS = {
    "module": ("import triton", "@triton.jit", "triton"),
    "module alias": ("import triton as tt", "@tt.jit", "triton"),
    "from": ("from triton import jit", "@jit", "triton"),
    "from alias": ("from triton import jit as j", "@j", "triton"),
    "handed on": ("from somelib.utils import tl, triton as tt", "@tt.jit", "triton"),
    "handed on beside": ("from .imports import triton", "@triton.jit", "triton"),
    "imported by name": ("triton = importlib.import_module('triton')", "@triton.jit", "triton"),
    "star": ("from triton import *", "@jit", "triton"),
    "runtime": ("from triton.runtime.jit import jit", "@jit", "triton"),
    "assigned": ("import triton\nfast = triton.jit", "@fast", "triton"),
    "arguments": ("import triton", "@triton.jit(noinline=True, do_not_specialize=['n'])", "triton"),
    "partial": (
        "import functools\nimport triton\nj = functools.partial(triton.jit, noinline=True)",
        "@j",
        "triton",
    ),
    "stacked": (
        "import triton",
        "@triton.autotune(configs=[], key=['n'])\n@triton.heuristics({'E': lambda a: True})\n@triton.jit",
        "triton",
    ),
    "unknown around it": (
        "import triton\nfrom mine import libentry",
        "@libentry()\n@triton.jit\n@other",
        "triton",
    ),
    "nki beta 1": ("import neuronxcc.nki as nki", "@nki.jit", "nki"),
    "nki beta 1 whole": ("import neuronxcc.nki", "@neuronxcc.nki.jit", "nki"),
    "nki beta 1 from": ("from neuronxcc import nki", "@nki.jit(mode='baremetal')", "nki"),
    "nki benchmark": ("from neuronxcc.nki import benchmark", "@benchmark(warmup=5)", "nki"),
    "nki of torch_neuronx": ("from torch_neuronx import nki_jit", "@nki_jit()", "nki"),
    "nki of its operators": ("from torch_neuronx.xla_impl.ops import nki_jit", "@nki_jit", "nki"),
    "nki current": ("import nki", "@nki.jit", "nki"),
    "nki platform": ("import nki", "@nki.jit(platform_target='trn2')", "nki"),
}

NO_KERNELS = {
    "another jit": ("from numba import jit", "@jit"),
    "another module's triton": ("import mine.triton", "@mine.triton.jit"),
    "relative": ("from .triton import jit", "@jit"),
    "not imported": ("", "@triton.jit"),
    "a call of its result": ("import triton", "@triton.testing.perf_report([])"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_kernel_is_found_however_its_decorator_is_spelled(spelling: str) -> None:
    imports, decorators, dialect = SPELLINGS[spelling]
    text = f"{imports}\n\n{decorators}\n{BODY}"
    assert may_hold_kernels(text)
    (kernel,) = find_kernels(text).kernels
    first = text[: text.index(decorators)].count("\n") + 1
    assert (kernel.name, kernel.dialect, kernel.first_line) == ("k", dialect, first)
    assert text.splitlines()[kernel.line - 1].startswith("def k")
    assert text.splitlines()[kernel.end_line - 1] == "    pass"
    assert kernel.arguments == ("x_ptr", "n", "BLOCK")


@pytest.mark.parametrize("spelling", NO_KERNELS)
def test_other_decorators_make_no_kernel(spelling: str) -> None:
    imports, decorators = NO_KERNELS[spelling]
    assert find_kernels(f"{imports}\n\n{decorators}\n{BODY}").kernels == ()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("class A:\n    @staticmethod\n    @triton.jit\n    def k(x):\n        pass\n", ["A.k"]),
        (
            "def make():\n    import triton as t\n\n    @t.jit\n    def k(x):\n        pass\n    return k\n",
            ["make.k"],
        ),
        ("if True:\n    @triton.jit\n    def k(x):\n        pass\nelse:\n    k = None\n", ["k"]),
        ("try:\n    import gone\nexcept ImportError:\n    @triton.jit\n    def k(x):\n        pass\n", ["k"]),
        ("@triton.jit\ndef k(x):\n    pass\n\n\n@triton.jit\ndef k(y):\n    pass\n", ["k", "k#2"]),
    ],
    ids=["class", "closure", "if", "except", "twice"],
)
def test_where_kernels_stand(text: str, names: list[str]) -> None:
    discovery = find_kernels(f"import triton\n{text}")
    assert [k.name for k in discovery.kernels] == names
    assert [f.code for f in discovery.findings] == ["duplicate-kernel"] * (names == ["k", "k#2"])


@pytest.mark.parametrize(
    "statement",
    [
        "plain = triton.jit(plain)",
        "kernel = triton.heuristics({})(triton.jit(plain))",
        "if True:\n    plain = triton.jit(do_not_specialize=['n'])(plain)",
        "def build():\n    return triton.jit(plain)",
    ],
)
def test_a_function_that_a_call_makes_a_kernel_of_is_one(statement: str) -> None:
    text = f"import triton\ndef plain(x):\n    pass\ndef host(x):\n    return other(plain)\n{statement}\n"
    (kernel,) = find_kernels(text).kernels
    assert (kernel.name, kernel.line, kernel.dialect) == ("plain", 2, "triton")


@pytest.mark.parametrize(
    "use", ["helper(x)", "tl.reduce(x, 0, helper)", "tl.reduce(x, 0, combine_fn=helper)"]
)
def test_what_another_kernel_uses_is_a_device_function(use: str) -> None:
    text = (
        f"import triton\n\n@triton.jit\ndef helper(a):\n    return a\n\n@triton.jit\ndef k(x):\n    {use}\n"
    )
    assert {k.name: k.device_function for k in find_kernels(text).kernels} == {"helper": True, "k": False}


KERNEL = "import triton\n\n@triton.jit\ndef k(x):\n    y = x + 1\n    return y\n"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (KERNEL.replace("x + 1", "x  +  1  # one more"), True),
        ("\n\n# moved\n" + KERNEL, True),
        (KERNEL + "\nz = 3\n", True),
        (KERNEL.replace("x + 1", "x + 2"), False),
        (KERNEL.replace("@triton.jit", "@triton.jit(noinline=True)"), False),
    ],
    ids=["layout", "place", "rest", "body", "decorator"],
)
def test_the_hash_is_of_the_kernel_and_not_of_its_layout(text: str, same: bool) -> None:
    (before,), (after,) = find_kernels(KERNEL).kernels, find_kernels(text).kernels
    assert (before.content_hash == after.content_hash) is same


@pytest.mark.parametrize(
    "text", ["def (", "x = '\x00'", "(" * 5000, "\udcff", "@triton.jit\ndef k(:\n"], ids=repr
)
def test_text_that_does_not_parse_gives_one_finding(text: str) -> None:
    discovery = find_kernels(text[:6000])
    assert discovery.kernels == ()
    assert [f.code for f in discovery.findings] == ["syntax-error"]
    assert discovery.findings[0].line >= 1


@given(st.text())
def test_no_text_raises(text: str) -> None:
    find_kernels("import triton\n" + text)


@pytest.mark.parametrize(
    ("body", "device"),
    [
        ("return x", True),
        ("if x:\n        return x, x", True),
        ("return", False),
        ("return None", False),
        ("def inner():\n        return x", False),
    ],
)
def test_what_returns_a_value_is_called_by_kernels(body: str, device: bool) -> None:
    (kernel,) = find_kernels(f"import triton\n@triton.jit\ndef f(x):\n    {body}\n").kernels
    assert kernel.device_function is device
    (kernel,) = find_kernels(f"from neuronxcc import nki\n@nki.jit\ndef f(x):\n    {body}\n").kernels
    assert not kernel.device_function  # these return their outputs
