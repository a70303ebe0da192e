"""Runs the rules of ``page_rules`` on the emulator: which rules of AWS's pages hold there."""

from __future__ import annotations

import linecache
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from accelopt_benchmarks.nki.page_rules import Array, PageRule
from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError
from accelopt_profiling.nki.install import emulated
from accelopt_profiling.nki.time_model.hardware import hardware

#: "agrees"; "differs" in a value; what is documented is "refused", or ends in an error that is no finding ("fails");
#: what is forbidden is "accepted".
Verdict = Literal["agrees", "differs", "refused", "fails", "accepted"]

_FILE = "page_rule.py"
_HEAD = """\
from dataclasses import dataclass
import nki
import nki.isa as nisa
import nki.language as nl

def sbuf(shape, dtype=nl.float32):
    return nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)

def psum(shape, dtype=nl.float32):
    return nl.ndarray(shape, dtype=dtype, buffer=nl.psum)

def hbm(shape, dtype=nl.float32):
    return nl.ndarray(shape, dtype=dtype, buffer=nl.shared_hbm)

@nki.jit
def kernel({names}):
"""
_LOAD = (
    "{tile} = nl.ndarray({name}.shape, dtype={name}.dtype, buffer=nl.sbuf)\nnisa.dma_copy({tile}, {name})\n"
)
_STORE = """
result = nl.ndarray(o.shape, dtype=o.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(result, o)
return result
"""


@dataclass(frozen=True)
class RuleResult:
    """What became of a rule; ``detail`` is the refusal, the error or the first difference."""

    rule: PageRule
    verdict: Verdict
    detail: str = ""


def judge(rules: Iterable[PageRule]) -> list[RuleResult]:
    """Run the rules one after another, each as a kernel of its own."""
    return [_judged(rule) for rule in rules]


def _judged(rule: PageRule) -> RuleResult:
    names = "abc"[: len(rule.inputs)]
    on_chip = [
        (tile, name) for tile, name, x in zip("xyz", names, rule.inputs, strict=False) if x.shape[0] <= 128
    ]
    body = "".join(_LOAD.format(tile=tile, name=name) for tile, name in on_chip) + rule.statements + _STORE
    text = _HEAD.format(names=", ".join(names)) + textwrap.indent(body, "    ")
    linecache.cache[_FILE] = (
        len(text),
        None,
        text.splitlines(keepends=True),
        _FILE,
    )  # kernels read their source
    with emulated("full", limits=hardware(rule.core).limits, sdk=False, version=rule.version) as run:
        space: dict[str, object] = {}
        exec(compile(text, _FILE, "exec"), space)  # noqa: S102  # our own text
        try:
            kernel: Any = space["kernel"]
            with np.errstate(all="ignore"):
                result = (kernel[rule.cores] if rule.cores > 1 else kernel)(*rule.inputs)
        except KernelFaultError as fault:
            return RuleResult(rule, "agrees" if rule.expected is None else "refused", fault.message)
        except Exception as error:  # what is no finding of ours is one of the results
            return RuleResult(rule, "fails", f"{type(error).__name__}: {error}")
    findings = [f for m in run.machines for f in m.findings]
    errors = [f.message for f in findings if f.severity == "error"]
    if rule.expected is None:
        return RuleResult(rule, "agrees" if errors else "accepted", "; ".join(errors))
    if errors:
        return RuleResult(rule, "refused", "; ".join(errors))
    if rule.told and not any(f.code in ("beyond-range", "contradiction") for f in findings):
        return RuleResult(rule, "accepted", "nothing is told of it")
    problem = _difference(np.asarray(result), rule.expected)
    return RuleResult(rule, "differs" if problem else "agrees", problem)


def _difference(found: Array, expected: Array) -> str:
    """Return where two results differ first: integers at all, numbers by more than rounding in their type explains."""
    if found.shape != expected.shape:
        return f"the shape is {found.shape}, not {expected.shape}"
    exact = expected.dtype.kind in "iu"
    close = (
        found == expected
        if exact
        else np.isclose(
            found, expected, rtol=2e-3 if expected.dtype.itemsize == 2 else 1e-4, atol=1e-5, equal_nan=True
        )
    )
    if close.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~close)[0])
    return (
        f"{int((~close).sum())} of {close.size} elements; the first, {at}, is {found[at]}, not {expected[at]}"
    )
