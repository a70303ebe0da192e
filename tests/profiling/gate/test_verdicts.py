"""Wrong kernels are refused for the right reason, honest ones accepted. In plain NumPy, so that only the gate is
tested, and without reading the text, so that the run itself has to find them.
"""

# ruff: noqa: E501 - tables of sources, one case a line

from __future__ import annotations

import pytest
from support.gate_checker import ORIGINAL, PROBLEM, Checker, codes

from accelopt_profiling.gate.request import CaseOptions
from accelopt_profiling.jobs import Limits


def rewritten(*changes: tuple[str, str], head: str = "") -> str:
    text = ORIGINAL
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return head + text


def ending(lines: str, head: str = "") -> str:
    """The original with other last lines in place of ``return out``."""
    return rewritten(("return out", lines.replace("\n", "\n    ")), head=head)


WRONG = {
    "drops the small term": (rewritten((" + np.float32(1e-6)", "")), {"wrong-result", "not-finite"}),
    "uses the first row's scale": (rewritten(("* scale *", "* scale[:1] *")), {"wrong-result"}),
    "forgets the last rows": (rewritten(("out[:] = x * scale * w", "out[:-4] = (x * scale * w)[:-4]")), {"not-written"}),
    "scales by 1.001": (rewritten(("* w", "* w * np.float32(1.001)")), {"wrong-result"}),
    "one wrong element": (ending("out[-1, -1] += 0.01\nreturn out"), {"wrong-result"}),
    "computes in float16": (rewritten(("x * scale", "(x.astype(np.float16) * scale).astype(np.float32)")), {"wrong-result"}),
    "assumes rms 1": (rewritten(("(x * x).mean(axis=1, keepdims=True)", "np.float32(1)")), {"wrong-result"}),
    "returns zeros": (ending("return np.zeros_like(x)"), {"wrong-result"}),
    "returns its input": (ending("return x"), {"wrong-result", "aliases-input"}),
    "returns a view of its input": (ending("x[:] = out\nreturn x[:, :]"), {"inputs-changed", "aliases-input"}),
    "zeroes its inputs": (ending("w[:] = 0\nreturn out"), {"inputs-changed"}),
    "returns nothing": (ending("pass"), {"no-output"}),
    "returns an object": (ending("return object()"), {"wrong-output"}),
    "returns two outputs": (ending("return out, out.copy()"), {"wrong-count"}),
    "returns float64": (ending("return out.astype(np.float64)"), {"wrong-dtype"}),
    "returns another shape": (ending("return out.T.copy()"), {"wrong-shape"}),
    "is made for one shape": (rewritten(("out[:] =", "assert x.shape == (48, 96)\n    out[:] =")), {"kernel-raised"}),
    "hides NaN": (ending("out[0, 0] = np.nan\nreturn out"), {"not-finite"}),
    "is wrong every second time": (
        ending("CALLS.append(1)\nreturn out if len(CALLS) % 2 else out + np.float32(0.1)", head="CALLS = []\n"),
        {"wrong-result", "nondeterministic"},
    ),
    "adds noise": (
        ending("return out + np.random.default_rng().normal(0, 0.01, out.shape).astype(np.float32)"),
        {"wrong-result"},
    ),
    "remembers by address": (
        ending("return CACHE.setdefault(x.ctypes.data, out).copy()", head="CACHE = {}\n"),
        {"wrong-result"},
    ),
    "gives out one buffer": (
        ending("last = BUFFERS.setdefault(x.shape, out)\nlast[:] = out\nreturn last", head="BUFFERS = {}\n"),
        {"output-reused"},
    ),
    "imports the reference": (ending("import problem_of_k\nreturn problem_of_k.reference(x, w)"), {"missing-package"}),
    "reads the reference": (
        ending("import glob\nassert not glob.glob('../**/*', recursive=True) or open(glob.glob('../**/problem_of_k.py', recursive=True)[0])\nreturn out"),
        {"reads-files"},
    ),
    "reads the seeds": (
        ending("import glob\nprint(open(glob.glob('../request-*')[0]).read())\nreturn out"), {"reads-files"},
    ),
    "writes the expected values": (
        ending("import os\nos.makedirs('../gate/0/expected', exist_ok=True)\nreturn out"), {"writes-outside"},
    ),
    "overwrites the inputs": (
        ending("import glob\nfor f in glob.glob('../gate/*/inputs/*.npy'): np.save(f, np.zeros_like(np.load(f)))\n"
               "return np.zeros_like(x)"),
        {"reads-files"},
    ),
    "raises": (ending("raise RuntimeError('no')"), {"kernel-raised"}),
    "does not parse": ("def kernel(x, w:\n", {"does-not-parse"}),
    "lacks the function": ("import numpy as np\n", {"no-entry"}),
    "exits": (ending("import os; os._exit(0)"), {"kernel-exited"}),
    "raises SystemExit": (ending("raise SystemExit(0)"), {"kernel-exited"}),
    "crashes": (ending("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"), {"ends-the-process"}),
    "wants a missing package": ("import surely_not_installed\n" + ORIGINAL, {"missing-package"}),
}  # fmt: skip

HONEST = {
    "the original": ORIGINAL,
    "another order of the sum": rewritten(("(x * x).mean(axis=1, keepdims=True)", "(x.T * x.T)[::-1].mean(axis=0)[:, None]")),
    "a product of matrices": rewritten(("(x * x).mean(axis=1, keepdims=True)", "np.einsum('ij,ij->i', x, x)[:, None] / np.float32(x.shape[1])")),
    "multiplied by the reciprocal root": rewritten(("1 / np.sqrt(", "np.reciprocal(np.sqrt("), ("1e-6))", "1e-6)))")),
    "fused differently": rewritten(("x * scale * w", "x * (scale * w)")),
    "more precise inside": rewritten(("(x * x).mean", "(x.astype(np.float64) ** 2).mean"), ("x * scale * w", "x * scale.astype(np.float32) * w")),
    "in tiles": rewritten(("out[:] = x * scale * w", "for r in range(0, len(x), 16):\n        out[r:r+16] = x[r:r+16] * scale[r:r+16] * w")),
    "with a workspace of its own": ending("SPACE.append(out)\nreturn SPACE.pop().copy()", head="SPACE = []\n"),
}  # fmt: skip


#: Honest kernels outside the slow tests: an accepted one goes through all steps of the gate, each in a process.
QUICK = {"the original", "with a workspace of its own"}


@pytest.mark.slow
def test_each_step_of_a_check_is_told_when_it_begins(checker: Checker) -> None:
    told: list[str] = []
    verdict, _ = checker.numpy(rewritten(("w\n", "(w * 1)\n")), PROBLEM, ORIGINAL, tell=told.append)
    assert verdict.accepted, verdict.reasons
    steps = [
        "drawing inputs",
        "running it",
        "running the original",
        "running the reference",
        "comparing outputs",
    ]
    assert told == ["reading its text", *steps]


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels_are_refused(checker: Checker, name: str) -> None:
    text, expected = WRONG[name]
    verdict, receipt = checker.numpy(text, PROBLEM, ORIGINAL, CaseOptions(reading=False))
    assert not verdict.accepted
    assert set(codes(verdict)) & expected, verdict.reasons
    assert codes(verdict).count("wrong-result") <= 1  # one reason names all cases
    assert receipt.body["accepted"] is False


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in HONEST]
)
def test_honest_kernels_are_accepted(checker: Checker, name: str) -> None:
    verdict, receipt = checker.numpy(HONEST[name], PROBLEM, ORIGINAL)
    assert verdict.accepted, verdict.reasons
    assert codes(verdict) == []
    assert {check["outcome"] for check in verdict.checks} == {"passed"}
    assert verdict.receipt == receipt.id


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code", "limits"),
    [
        ("while True: pass", "timeout", Limits(seconds=2)),
        ("np.ones(1 << 34)", "out-of-memory", Limits(seconds=20, memory_bytes=2 << 30)),
        ("print('x' * (1 << 22))", "too-much-output", Limits(seconds=20)),
    ],
)
def test_limits(checker: Checker, name: str, code: str, limits: Limits) -> None:
    verdict, _ = checker.numpy(ending(name + "\nreturn out"), PROBLEM, ORIGINAL, limits=limits)
    assert codes(verdict) == [code], verdict.reasons


@pytest.mark.slow
def test_a_receipt_says_what_was_checked(checker: Checker) -> None:
    _, receipt = checker.numpy(ORIGINAL, PROBLEM, ORIGINAL)
    _, again = checker.numpy(ORIGINAL, PROBLEM, ORIGINAL)
    checks = [c for c in receipt.body["checks"] if not c["case"].startswith(("derived", "long axis"))]
    distributions = [c["distribution"] for c in checks]
    assert distributions == [
        *["original"] * 4,
        "large",
        "small",
        "skewed",
        "rows",
        "single elements",
        "integers",
        "same sums",
        "same rest",
    ]
    seeds = [case["seed"] for case in receipt.body["cases"]]
    assert len(set(seeds)) == len(seeds)
    assert not set(seeds) & {case["seed"] for case in again.body["cases"]}
    assert receipt.body["inputs"][0]["shapes"] == [[48, 96], [96]]
    assert receipt.body["checks"][0]["outputs"][0]["relative"] == 2e-5
    assert [check["bitwise_repeatable"] for check in receipt.body["checks"]].count(True) == 1
