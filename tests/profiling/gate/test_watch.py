"""What the run finds by itself: each trick in a helper that is not read, so that only the run can tell."""

from __future__ import annotations

import dataclasses

import pytest
from support.gate_checker import Checker, codes

from accelopt_profiling.gate.budget import GateBudget
from accelopt_profiling.gate.receipts import differences, request_of
from accelopt_profiling.gate.request import CaseOptions

PROBLEM = """
import numpy as np

def get_inputs(rows=6, columns=8):
    return [np.random.normal(size=(rows, columns)).astype(np.float32)]

def reference(x):
    return x * 2
"""
KERNEL = "import numpy as np\n\ndef kernel(x):\n    HERE\n    return x * np.float32(2)\n"
QUICK = CaseOptions(["original", "integers", "same sums"], budget=GateBudget(repeats=4), reading=False)

TRICKS = {
    "import subprocess; subprocess.run(['true'])": "background-work",
    "import threading; threading.Thread(target=print).start()": "background-work",
    "import os; os.fork()": "background-work",
    "import gc; gc.get_objects()": "reads-the-gate",
    "import sys; sys._getframe(1)": "reads-the-gate",
    "import inspect; inspect.currentframe()": "reads-the-gate",
    "try: 1 / 0\n    except ZeroDivisionError as error: getattr(error.__traceback__, ''.join(('tb', '_frame')))":
        "reads-the-gate",
    "(n for n in x).gi_frame": "reads-the-gate",
    "import traceback; list(traceback.walk_stack(None))": "reads-the-gate",
    "import socket; socket.socket()": "reaches-out",
    "import ctypes; ctypes.string_at(id(x), 4)": "native-code",
    "exec('x = 1')": "obfuscated",
    "open('/proc/self/environ').read()": "reads-files",
    "open('/tmp/somewhere', 'w').write('x')": "writes-outside",
    "import os; os.listdir('..')": "reads-files",
    "import os; os.path.isdir('~') or os.scandir(os.path.expanduser('~'))": "reads-files",
    "import pathlib; pathlib.Path.home().joinpath('.ssh').exists() or list(pathlib.Path.home().iterdir())":
        "reads-files",
    "import tempfile; tempfile.NamedTemporaryFile('w', delete=False).write('x')": "writes-outside",
    "import os, tempfile; os.open(os.path.join(tempfile.gettempdir(), 'x'), os.O_CREAT | os.O_WRONLY)":
        "writes-outside",
    "import os; os.makedirs(os.path.expanduser('~/.cache/own'))": "writes-outside",
    "x.tofile('here')": "writes-outside",
    "np.allclose = lambda *a: True": "patches",
    "import json; json.load = print": "patches",
    "import time\n    if time.monotonic() > kernel.__dict__.setdefault('end', time.monotonic() + 3600): x = x * 0":
        "mode-branch",
    "kernel.calls = 1 + getattr(kernel, 'calls', 0)\n    if kernel.calls > 400: x = x * 0": "mode-branch",
    "import sys\n    for probe in sys.modules['accelopt_profiling.gate.probes.registry'].PROBES: probe.runs = print"
    "\n    kernel.calls = 1 + getattr(kernel, 'calls', 0)\n    if kernel.calls > 400: x = x * 0": "mode-branch",
    "x[0] = 0; x = x.copy()": "inputs-changed",
    "return (x * 2).view(Sub)\n\nclass Sub(np.ndarray): pass\n\ndef rest(x):": "wrong-type",
    "return SEEN.setdefault((x.shape, x.sum(), x[0, 0], x[-1, -1]), x * 2).copy()\n\nSEEN = {}\n\ndef rest(x):":
        "wrong-result",
}  # fmt: skip

HONEST = {
    "a scratch file": "import tempfile\n    with tempfile.TemporaryFile() as file: file.write(b'x')",
    "a folder for scratch files": "import tempfile; tempfile.gettempdir()",
    "its own text": "assert 'def kernel' in open(__file__).read()",
    "a named tuple": "import collections; collections.namedtuple('Shape', 'm n')(*x.shape)",
    "a data class": "import dataclasses; dataclasses.make_dataclass('C', ['m'])(1)",
    "a message": "import logging; logging.getLogger('k').warning('%s', x.shape)",
    "an address": "assert x.ctypes.data % 4 == 0",
    "a traceback as text": "import traceback\n    try: 1 / 0\n    except ZeroDivisionError: traceback.format_exc()",
    "a warning": "import warnings; warnings.warn('slow')",
}


pytestmark = pytest.mark.slow


@pytest.mark.parametrize("line", TRICKS)
def test_tricks(checker: Checker, line: str) -> None:
    text = KERNEL.replace("HERE", line)
    verdict, _ = checker.numpy(text, PROBLEM, text, QUICK)
    assert not verdict.accepted
    assert TRICKS[line] in codes(verdict), verdict.reasons


@pytest.mark.parametrize("name", HONEST)
def test_honest(checker: Checker, name: str) -> None:
    text = KERNEL.replace("HERE", HONEST[name])
    verdict, _ = checker.numpy(text, PROBLEM, text, QUICK)
    assert verdict.accepted, verdict.reasons


HOST_MATTERS = {
    "lists a folder": "import os; os.path.isdir('/usr/lib') and os.listdir('/usr/lib')",
    "keeps a file": "import tempfile\n    with tempfile.NamedTemporaryFile('w') as file: file.write('x')",
    "keeps a folder": "import os; os.makedirs(os.path.expanduser('~/.cache/own'), exist_ok=True)",
    "asks the environment": "import os; os.environ.get('HOME')",
    "has a lock": "import threading; threading.Lock()",
    "looks at modules": "import sys; sys.modules.get('torch')",
}


@pytest.mark.parametrize("line", HOST_MATTERS.values(), ids=HOST_MATTERS)
def test_a_rewrite_does_no_more_on_the_host_than_the_original(checker: Checker, line: str) -> None:
    quiet, busy = (KERNEL.replace("HERE", done) for done in ("pass", line))
    options = dataclasses.replace(QUICK, reading=True)
    refused, _ = checker.numpy(busy, PROBLEM, quiet, options)
    assert not refused.accepted
    assert set(codes(refused)) <= {"background-work", "reads-environment", "reads-files", "reads-the-gate"}
    assert all("The original does not." in reason.message for reason in refused.reasons)
    verdict, _ = checker.numpy(busy + "# changed\n", PROBLEM, busy, options)
    assert verdict.accepted, verdict.reasons


RUNS_A_PROGRAM = "import subprocess\n\ndef run():\n    subprocess.run(['true'])\n"


@pytest.mark.parametrize(("helper", "line", "refused"), [
    (RUNS_A_PROGRAM + "\nrun()\n", "import helper", False),
    (RUNS_A_PROGRAM, "import helper; helper.run()", True),
    (RUNS_A_PROGRAM + "\nrun()\n", "import helper; helper.run()", True),
])  # fmt: skip
def test_what_an_unchanged_file_does_while_it_is_imported_is_no_violation(
    checker: Checker, helper: str, line: str, refused: bool
) -> None:
    original, beside = KERNEL.replace("HERE", "import helper"), {"helper.py": helper}
    text = KERNEL.replace("HERE", line) + "# changed\n"
    verdict, _ = checker.numpy(text, PROBLEM, original, QUICK, beside=beside)
    assert ("background-work" in codes(verdict) or "reaches-out" in codes(verdict)) == refused, (
        verdict.reasons
    )
    alone, _ = checker.numpy(text, PROBLEM, text, QUICK, beside=beside)
    assert not alone.accepted  # nobody says whose file it is


def test_at_a_derived_shape_the_original_decides(checker: Checker) -> None:
    original = KERNEL.replace("HERE", "pass")
    silent = KERNEL.replace("HERE", "if len(x) not in (6,): return x * 0")
    raising = KERNEL.replace("HERE", "if len(x) != 6: raise ValueError(x.shape)")
    verdict, _ = checker.numpy(silent, PROBLEM, original, QUICK)
    assert codes(verdict)[0] == "wrong-result"
    assert "the original is right there" in verdict.reasons[0].message
    assert set(codes(checker.numpy(raising, PROBLEM, original, QUICK)[0])) == {"kernel-raised"}
    alone, _ = checker.numpy(raising, PROBLEM, raising, QUICK)
    assert alone.accepted, alone.reasons
    assert any(c["outcome"] == "refused by the kernel" for c in alone.checks)


def test_without_an_original_sizes_that_the_problem_leaves_open_have_to_be_right(checker: Checker) -> None:
    silent = KERNEL.replace("HERE", "x = np.concatenate([x[:6], 0 * x[6:]])")
    verdict, _ = checker.numpy(silent, PROBLEM, silent, QUICK)
    assert set(codes(verdict)) == {"wrong-result"}
    assert "leaves its sizes open" in verdict.reasons[0].message
    listed = PROBLEM + '\nshapes = [{"rows": 5}]\n'
    second, _ = checker.numpy(silent, listed, silent, QUICK)
    assert second.accepted, second.reasons
    assert codes(second) == ["not-general"]


def test_sizes_that_the_problem_states_as_numbers_are_varied_too(checker: Checker) -> None:
    fixed = "import numpy as np\ndef get_inputs(): return [100 + np.random.normal(size=(20, 3))]\n"
    fixed += "def reference(x): return x * 2\n"
    right = KERNEL.replace("HERE", "pass")
    verdict, _ = checker.numpy(right, fixed, right, QUICK)
    assert codes(verdict) == []
    silent = KERNEL.replace("HERE", "x = np.concatenate([x[:20], 0 * x[20:]])")
    verdict, _ = checker.numpy(silent, fixed, silent, QUICK)
    assert codes(verdict) == ["wrong-result"]
    assert "At the shape 40 for 20 (it takes its sizes from its inputs" in verdict.reasons[0].message
    made_for_20 = KERNEL.replace("HERE", "x = x[:20]")
    answer, _ = checker.numpy(made_for_20, fixed, made_for_20, QUICK)
    assert answer.accepted, answer.reasons
    assert codes(answer) == ["not-general"]
    assert "100" not in " ".join(str(c["shapes"]) for c in answer.checks)  # no axis has it


def test_a_receipt_is_a_question_again(checker: Checker) -> None:
    text = KERNEL.replace("HERE", "pass")
    verdict, receipt = checker.numpy(text, PROBLEM, text, QUICK)
    request = request_of(receipt)
    from accelopt_profiling.gate.gate import check

    _, again = checker.wait(check(checker.host, request))
    assert verdict.accepted
    assert differences(receipt, again) == []
    assert receipt.body["inputs"] == again.body["inputs"]
    receipt.body["candidate"]["files"]["k.py"] = text.replace("(2)", "(3)")
    _, changed = checker.wait(check(checker.host, request_of(receipt)))
    names = {name for name, _, _ in differences(receipt, changed)}
    assert {"accepted", "reasons"} <= names
    del receipt.body["candidate"]["files"]["k.py"]
    with pytest.raises(ValueError, match="missing"):
        request_of(receipt)
