"""Reading a candidate's text: what is certain has no honest use, and honest code is told of at most."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelopt_profiling.gate.reading.read import read
from accelopt_profiling.gate.reading.vocabulary import rule_for
from accelopt_profiling.kernels import find_kernels

KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def k(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)

def run(x):
    out = torch.empty_like(x)
    HERE
    k[(1,)](x, out, x.numel(), BLOCK=64)
    return out
"""

#: A line in the place of HERE, and the code of the certain finding, or None where there is none.
LINES = {
    "import ctypes": "native-code",
    "from ctypes import CDLL as load": "native-code",
    "import subprocess as s; s.run(['true'])": "background-work",
    "torch.allclose = lambda *a: True": "patches",
    "tl.load = None": "patches",
    "setattr(torch.nn.functional, 'softmax', None)": "patches",
    "F = torch.nn.functional; F.softmax = None": "patches",
    "torch.backends.cuda.matmul.allow_tf32 = False": None,
    "run.calls = 1": None,
    "k.fn.__globals__['x'] = 1": "reads-the-gate",
    "(lambda: 0).__code__": "reads-the-gate",
    "k.fn.__globals__.get('x')": "reads-the-gate",
    "run.__code__.co_consts": "reads-the-gate",
    "__builtins__.open": "reads-the-gate",
    "out.block.storage.size": "reads-the-gate",
    "out.__class__ = object": "patches",
    "vars(torch)['allclose'] = None": "patches",
    "globals()['x'] = 1": "patches",
    "eval('1')": "obfuscated",
    "getattr(torch, 'all' + 'close')": "obfuscated",
    "getattr(torch, 'float32')": None,
    "__import__('o' 's')": "obfuscated",
    "import os; os._exit(0)": "ends-the-process",
    "print('accepted')": None,
    "assert x.is_contiguous(), 'contiguous input is needed'": None,
    "x.data_ptr() % 16": None,
    "CACHE[x.data_ptr()]": "cached-result",
    "if id(x) in SEEN: return SEEN[id(x)]": "cached-result",
    "import time; started = time.time()": None,
    "import time\n    if time.time() % 2 > 1: return x * 0": "mode-branch",
    "import os\n    if os.environ.get('FAST'): return x * 0": "mode-branch",
    "import os\n    if os.environ.get('DEBUG'): print(x)": None,
    "if x.numel() == 0: return out": None,
    "with torch.no_grad(): pass": None,
    "s = torch.cuda.Stream()": "background-work",
}


@pytest.mark.parametrize("line", LINES)
def test_one_line(line: str) -> None:
    certain = {f.code for f in read(KERNEL.replace("HERE", line)) if f.certain}
    assert certain == ({LINES[line]} if LINES[line] else set()) or LINES[line] in certain


#: Ways to do something, each of another kind than the others, though they are told alike.
ALIKE = [
    *LINES,
    "import sys; sys.modules['torch']",
    "import sys; sys.modules.get('torch')",
    "import sys; list(sys.modules)",
    "import sys; sys.modules.clear()",
    "torch.cuda.graph(None)",
    "from torch.cuda import graph; graph",
    "exec",
    "exec('x = 1')",
    "import unittest.mock; unittest.mock.patch('x')",
    "torch.library.impl('aten::add', 'cpu')",
    "torch.library.impl = None",
    "torch.cuda.Stream()",
    "torch.cuda.Stream().synchronize()",
    "vars(out)['x'] = 1; out.__dict__['x'] = 1; out.__dict__.clear()",
    "x.half(); tl.dot(x, x); tl.dot(x, x, allow_tf32=True); tl.dot(x, x, input_precision='tf32'); x.to('half')",
]


def test_findings_about_one_subject_say_the_same() -> None:
    """What the original does too is known by code and subject: two things may not share both."""
    messages: dict[tuple[str, str], set[str]] = {}
    for line in ALIKE:
        for finding in read(KERNEL.replace("HERE", line)):
            messages.setdefault((finding.code, finding.subject), set()).add(finding.message)
    assert {key: texts for key, texts in messages.items() if len(texts) > 1} == {}


def test_looking_at_all_modules_is_held_against_a_rewrite_of_what_looks_at_one() -> None:
    one, all_of_them = (
        KERNEL.replace("HERE", f"import sys; {look}")
        for look in ("sys.modules[__name__]", "list(sys.modules)")
    )
    assert [f.code for f in read(all_of_them, one) if f.certain] == ["reads-the-gate"]


def test_a_finding_names_its_line() -> None:
    finding = next(f for f in read(KERNEL.replace("HERE", "eval('1')")) if f.certain)
    assert KERNEL.splitlines()[finding.line - 1].strip() == "HERE"


def test_what_the_original_does_too_is_no_finding_about_its_rewrite() -> None:
    original = KERNEL.replace("HERE", "import ctypes")
    assert not any(f.certain for f in read(original.replace("BLOCK=64", "BLOCK=128"), original))
    assert any(f.certain for f in read(original + "\nexec('')\n", original))


def test_a_problem_in_the_file_is_left_out_unless_the_kernel_uses_it() -> None:
    problem = "\ndef reference(x):\n    return eval('x')\n\nif __name__ == '__main__':\n    exec('')\n"
    text = KERNEL.replace("HERE", "pass")
    assert not any(f.certain for f in read(text + problem))
    assert any(f.certain for f in read(text.replace("pass", "reference(x)") + problem))
    assert any(f.certain for f in read(text + problem.replace("==", "!=")))


@pytest.mark.parametrize("terms", [600, 990, 1200, 2500])
def test_what_is_too_deep_to_be_read_is_refused(terms: int) -> None:
    """A long sum hides nothing, wherever it stands: it is refused where the original has none."""
    deep = KERNEL.replace("HERE", "pass") + "\nSUM = " + " + ".join(["1"] * terms) + "\n"
    assert [f.code for f in read(deep) if f.certain] == ["obfuscated"]
    assert not any(f.certain for f in read(deep.replace("BLOCK=64", "BLOCK=128"), deep))
    hidden = KERNEL.replace("HERE", "import ctypes") + "\nSUM = " + " + ".join(["1"] * 200) + "\n"
    assert [f.code for f in read(hidden) if f.certain] == ["native-code"]
    assert all(f.code == "syntax-error" for f in find_kernels(deep).findings)


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    read(text)


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz._", max_size=30))
def test_a_rule_covers_a_name_and_what_is_below_it(rest: str) -> None:
    assert rule_for("ctypes" + ("." + rest if rest else "")) == ("native-code", True)
    assert rule_for("ctypesque" + rest) is None


@pytest.mark.parametrize(
    "line",
    [
        'SLOW = os.environ.get("TRITON_INTERPRET") == "1"',
        'SLOW = any(name.endswith("_INTERPRET") for name in os.environ)',
        'SLOW = os.environ["TRITON_" + "INTERPRET"]',
        'SLOW = not os.path.exists("/dev/nvidia0")',
        "SLOW = triton.knobs.runtime.interpret",
        "from triton.runtime.interpreter import InterpretedFunction",
    ],
)
def test_asking_whether_kernels_are_interpreted(line: str) -> None:
    findings = read(f"import os\nimport triton\n{line}\n")
    assert any(f.certain and f.code == "reads-the-gate" for f in findings), findings


@pytest.mark.parametrize(
    "line",
    ['os.environ["TRITON_INTERPRET"] = "0"', '"""INTERPRET"""', 'BLOCK = int(os.environ.get("BLOCK", "64"))'],
)
def test_setting_the_switch_asks_nothing(line: str) -> None:
    assert not [f for f in read(f"import os\n{line}\n") if f.certain]


def product(precision: str) -> str:
    return f"""import triton
import triton.language as tl

@triton.jit
def kernel(a, b, c):
    tl.store(c, tl.dot(tl.load(a), tl.load(b){precision}))
"""


def test_products_in_fewer_bits_than_the_original_takes() -> None:
    full, default, tf32 = (product(p) for p in (', input_precision="ieee"', "", ", allow_tf32=True"))
    for lowered in (default, tf32):
        assert any(f.code == "lowered-products" for f in read(lowered, full))
        assert not any(f.code == "lowered-products" for f in read(lowered, product(", None")))
        assert not any(f.code == "lowered-products" for f in read(full, lowered))


@pytest.mark.parametrize(
    ("line", "certain"),
    [
        ('SLOW = any(name.startswith("NEURON_RT_") for name in os.environ)', True),
        ('SLOW = "--check" in sys.argv', True),
        ("SLOW = bool(1)", False),
    ],
)
def test_a_kernel_that_branches_on_the_host_while_it_is_traced(line: str, certain: bool) -> None:
    text = f"""
import os
import sys
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

{line}

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    if SLOW:
        tile = nl.maximum(tile, 0.0)
    nl.store(out, tile)
    return out
"""
    assert any(f.certain and f.code == "mode-branch" for f in read(text)) is certain
