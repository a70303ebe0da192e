"""The profile step for NKI kernels: first numbers from shapes alone, then values, findings and line costs."""

from __future__ import annotations

import dataclasses
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.nki_kernels import ONE_TILE
from support.problem_files import context_of

from accelopt_profiling.jobs import ProfileParams
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.nki.install import emulated, sdk_present
from accelopt_profiling.nki.profile import profile, specs_of, stand_ins
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.quantity import Known
from accelopt_profiling.step_context import StepFailedError

EXAMPLES = Path(__file__).parents[3] / "examples"
SMALL = {"nki_silu.py": {"m": 256, "n": 2048}, "nki_gelu_gate.py": {"m": 256, "n": 2048},
         "nki_rmsnorm.py": {"m": 256, "n": 1024}}  # fmt: skip

SILU = ONE_TILE.format(dotted="neuronxcc.nki")


@dataclasses.dataclass
class Profiled:
    kernels: list[KernelMeasurement]
    emitted: list[dict[str, Any]]


def profiled(
    folder: Path,
    text: str,
    specs: list[dict[str, Any]] | None = None,
    target: str = "trn1",
    problem: ProblemRef = ProblemRef("module"),  # noqa: B008  (it is frozen)
) -> Profiled:
    emitted: list[dict[str, Any]] = []
    context = context_of(
        folder, {"kernel.py": text}, "kernel.py", lambda value: emitted.append(to_plain(value))
    )
    kernels = list(find_kernels(text).kernels)
    params = ProfileParams(kernels, problem, target, input_specs=specs)
    return Profiled(profile(context, params), emitted)


def shrunk(name: str) -> str:
    """An example with its main shape made small."""
    text = (EXAMPLES / name).read_text()
    line = next(line for line in text.splitlines() if line.startswith("def get_inputs("))
    sizes = ", ".join(f"{k}={v}" for k, v in SMALL[name].items())
    return text.replace(line, f"def get_inputs({sizes}):")


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("name", SMALL)
def test_an_example_is_right_and_gets_an_estimate(name: str, target: str, tmp_path: Path) -> None:
    (kernel,) = profiled(tmp_path, shrunk(name), target=target).kernels
    assert kernel.correctness.status == "passed", kernel.correctness
    assert kernel.latency.known is Known.ESTIMATED
    assert kernel.latency.low_us < kernel.latency.us < kernel.latency.high_us  # type: ignore[operator]
    assert 0 < kernel.percent_of_peak <= 100  # type: ignore[operator]
    assert (kernel.stage, kernel.target, kernel.bound is None) == ("checked", target, False)
    body = range(kernel.line, kernel.line + 40)
    assert kernel.lines
    assert all(cost.line in body and cost.text for cost in kernel.lines)
    assert from_plain(KernelMeasurement, json.loads(json.dumps(to_plain(kernel)))) == kernel


def test_first_numbers_come_from_remembered_shapes_before_any_input_is_drawn(tmp_path: Path) -> None:
    first = profiled(tmp_path, SILU)
    specs = first.emitted[0]["input_specs"]
    assert specs == [{"shape": [128, 512], "dtype": "float32"}]
    slow = SILU.replace("def get_inputs():", "def get_inputs():\n    raise_if_drawn()")
    emitted: list[Any] = []
    context = context_of(tmp_path, {"kernel.py": slow}, "kernel.py", emitted.append)
    params = ProfileParams(list(find_kernels(slow).kernels), ProblemRef("module"), "trn1", input_specs=specs)
    with pytest.raises(StepFailedError, match="raise_if_drawn"):
        profile(context, params)
    (kernel,) = emitted[0]["kernels"]
    assert kernel.stage == "traced"
    assert kernel.correctness.status == "not checked"
    assert kernel.latency.us == pytest.approx(first.kernels[0].latency.us)


def test_stale_shapes_are_replaced(tmp_path: Path) -> None:
    stale = [{"shape": [64, 512], "dtype": "float32"}]
    result = profiled(tmp_path, SILU, stale)
    assert [sorted(e) for e in result.emitted] == [["kernels"], ["input_specs"], ["kernels"]]
    assert result.kernels[0].quantities["dma_read_bytes"].value == 128 * 512 * 4


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "words"),
    [
        (
            "nl.sigmoid(tile)",
            "nl.sigmod(tile)",
            "unsupported",
            9,
            "nearest there is: neuronxcc.nki.language.sigmoid",
        ),
        ("nl.multiply(tile", "nl.add(tile", "wrong-result", 6, "times what is allowed"),
        ("nl.store(out,", "nl.store(out[0:64, :],", "out-of-bounds", 9, r"\(128, 512\)"),
        ("(128, 512)", "(256, 512)", "capacity", 8, "256; SBUF has 128"),
        (
            "    nl.store(out, nl.multiply(tile, nl.sigmoid(tile)))\n",
            "",
            "uninitialised-read",
            7,
            "not written",
        ),
    ],
)
def test_what_is_wrong_becomes_a_finding_on_its_line(
    old: str, new: str, code: str, line: int, words: str, tmp_path: Path
) -> None:
    import re

    assert old in SILU
    (kernel,) = profiled(tmp_path, SILU.replace(old, new)).kernels
    findings = [f for f in kernel.findings if f.code == code]
    assert [(f.line, f.severity) for f in findings] == [(line, "error")]
    assert re.search(words, findings[0].message), findings[0].message
    assert kernel.correctness.status == "failed"


@pytest.mark.parametrize("reference", [True, False])
def test_unwritten_memory_that_no_result_depends_on_is_a_warning(tmp_path: Path, reference: bool) -> None:
    """Only half of the partitions hold data, and only that half is stored."""
    text = SILU.replace(
        "tile = nl.load(x)",
        "whole = nl.ndarray((nl.par_dim(128), 512), dtype=x.dtype, buffer=nl.sbuf)\n"
        "    whole[0:64, 0:512] = nl.load(x)\n    tile = nl.copy(whole)[0:64, 0:512]",
    ).replace("(128, 512))", "(64, 512))")
    text = text if reference else text[: text.index("def reference")]
    (kernel,) = profiled(tmp_path, text).kernels
    assert kernel.correctness.status == ("passed" if reference else "not checked")
    ((severity, message),) = [
        (f.severity, f.message) for f in kernel.findings if f.code == "uninitialised-read"
    ]
    assert severity == "warning"
    assert "none reached a result" in message


def test_unwritten_memory_that_reaches_a_result_is_an_error(tmp_path: Path) -> None:
    text = SILU.replace(
        "tile = nl.load(x)",
        "tile = nl.ndarray((nl.par_dim(128), 512), dtype=x.dtype, buffer=nl.sbuf)\n"
        "    tile[0:64, 0:512] = nl.load(x[0:64, 0:512])",
    )
    (kernel,) = profiled(tmp_path, text[: text.index("def reference")]).kernels
    assert "uninitialised-read" in [f.code for f in kernel.findings if f.severity == "error"]


@pytest.mark.parametrize(("rate", "status"), [(0.5, "not checked"), (0.0, "passed"), (1.0, "failed")])
def test_a_result_that_random_numbers_change_is_not_checked(rate: float, status: str, tmp_path: Path) -> None:
    text = f"""
import nki
import nki.language as nl
import numpy as np

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.dropout(nl.load(x), {rate}))
    return out

def get_inputs():
    return [np.ones((128, 64), np.float32)]

def reference(x):
    return x
"""
    (kernel,) = profiled(tmp_path, text, target="trn2").kernels
    assert kernel.correctness.status == status
    assert ("stand-in" in [f.code for f in kernel.findings]) == (status == "not checked")


def test_small_transfers_are_found(tmp_path: Path) -> None:
    narrow = SILU.replace("tile = nl.load(x)", "tile = nl.copy(nl.load_transpose2d(x[:, 0:128]))").replace(
        "nl.store(out, ", "nl.store(out[:, 0:128], "
    )
    (kernel,) = profiled(tmp_path, narrow).kernels
    assert ("small-dma", 8) in [(f.code, f.line) for f in kernel.findings]


def test_a_kernel_that_nothing_calls_says_so(tmp_path: Path) -> None:
    other = SILU.replace("@nki.jit", "@nki.jit\ndef unused(x, y):\n    return x\n\n@nki.jit")
    unused, silu = profiled(tmp_path, other).kernels
    assert [f.code for f in unused.findings] == ["never-launched"]
    assert unused.latency.known is Known.NOT_MEASURED
    assert silu.correctness.status == "passed"


UNWRITTEN = ProblemRef(
    "inferred", path="kernel_problem.py", origin="inferred", options={"unreferenced": True, "inferred": True}
)


def test_each_kernel_of_a_file_without_a_problem_is_run_by_a_call_of_its_own(tmp_path: Path) -> None:
    silu = SILU.split("def get_inputs")[0]
    text = silu + silu[silu.index("@nki.jit") :].replace("silu(x)", "second(x)")
    result = profiled(tmp_path, text, problem=UNWRITTEN)
    assert [k.latency.known for k in result.kernels] == [Known.ESTIMATED] * 2
    assert not [f for k in result.kernels for f in k.findings if f.code == "never-launched"]
    assert len([e for e in result.emitted if "inferred" in e]) == 1, "the file has one inferred problem"


def test_a_kernel_that_no_inferred_call_launches_says_why(tmp_path: Path) -> None:
    silu = SILU.split("def get_inputs")[0]
    other = (
        silu[silu.index("@nki.jit") :].replace("silu(x)", "second(x)").replace("nl.load(x)", "nl.nothing(x)")
    )
    _, second = profiled(tmp_path, silu + other, problem=UNWRITTEN).kernels
    (finding,) = (f for f in second.findings if f.code in ("never-launched", "unsupported"))
    assert "nl.nothing" in finding.message or "nothing is not" in finding.message


@pytest.mark.parametrize(
    ("kind", "severity", "status"),
    [("x.dtype", "information", "not checked"), ("nl.float32", "error", "failed")],
)
def test_a_type_that_an_instruction_refuses_may_be_the_inferred_arguments(
    kind: str, severity: str, status: str, tmp_path: Path
) -> None:
    text = """
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

@nki.jit
def kernel(x):
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 128), dtype=KIND, buffer=nl.sbuf)
    right = nl.ndarray((128, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.memset(left, 1.0)
    nisa.memset(right, 1.0)
    nisa.nc_matmul(nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum), left, right)
    return out

def get_inputs():
    return [np.ones((128, 128), np.float32)]
"""
    problem = dataclasses.replace(UNWRITTEN, kind="module", path=None)
    (kernel,) = profiled(tmp_path, text.replace("KIND", kind), target="trn2", problem=problem).kernels
    (finding,) = [f for f in kernel.findings if f.code == "unsupported"]
    assert (finding.severity, kernel.correctness.status) == (severity, status), finding.message


def test_an_index_that_inferred_values_put_outside_makes_no_kernel_wrong(tmp_path: Path) -> None:
    text = SILU.split("def get_inputs")[0].replace("silu(x):", "silu(x, table):").replace(
        "tile = nl.load(x)", "at = nl.load(table)\n    tile = nl.load(x[at * 4096 + 4096, nl.arange(512)[None, :]])"
    )  # fmt: skip
    text += """
def get_inputs():
    return [np.ones((128, 512), np.float32), np.arange(128, dtype=np.int32).reshape(128, 1)]
"""
    problem = dataclasses.replace(UNWRITTEN, kind="module", path=None)
    (kernel,) = profiled(tmp_path, text, problem=problem).kernels
    assert [f.severity for f in kernel.findings if f.code == "out-of-bounds"] == ["information"]
    assert kernel.correctness.status == "not checked"


def test_kernels_inside_of_functions_are_run_by_them_and_told_apart(tmp_path: Path) -> None:
    """A function that launches the kernel that it defines need not return anything."""
    head, silu = SILU.split("@nki.jit")[0], "@nki.jit" + SILU.split("@nki.jit")[1].split("def get_inputs")[0]
    run = "silu(np.zeros((128, 512), np.float32))"
    text = head + "".join(
        f"def {name}(rows):\n{textwrap.indent(silu + run, '    ')}\n" for name in ("first", "second")
    )
    options = {"unreferenced": True, "inferred": True}
    problem = ProblemRef("inferred", path="kernel_problem.py", options=options)
    kernels = profiled(tmp_path, text, problem=problem).kernels
    assert [k.name for k in kernels] == ["first.silu", "second.silu"]
    assert [k.latency.known for k in kernels] == [Known.ESTIMATED, Known.NOT_MEASURED]


@pytest.mark.parametrize("target", ["h100", "trn9"])
def test_a_target_that_nki_does_not_have_is_an_error(target: str, tmp_path: Path) -> None:
    with pytest.raises(StepFailedError, match="choose one of"):
        profiled(tmp_path, SILU, target=target)


def test_specs_survive_the_way_there_and_back() -> None:
    inputs = [np.ones((3, 4), np.float32), 1e-5, np.zeros((2,), np.int32)]
    specs = specs_of(inputs)
    assert specs is not None
    again = stand_ins(json.loads(json.dumps(specs)))
    assert [getattr(a, "shape", a) for a in again] == [(3, 4), 1e-5, (2,)]
    assert [a.dtype for a in again if isinstance(a, np.ndarray)] == [np.float32, np.int32]
    assert specs_of([object()]) is None


def test_the_stand_in_modules_leave_with_the_emulation() -> None:
    before = set(sys.modules)
    with emulated():
        import neuronxcc.nki  # noqa: F401
    assert not {m for m in set(sys.modules) - before if m.startswith("neuronxcc")}
    assert not sdk_present()


SELFRUN = """
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x) * {factor})
    return out

if __name__ == "__main__":
    x = np.ones((128, 512), np.float32)
    got = kernel(x)
    {after}
"""


@pytest.mark.parametrize(
    ("after", "status", "severity", "words"),
    [
        (
            "assert np.allclose(got, 2 * x), 'too far off'",
            "failed",
            "error",
            "own check failed: AssertionError: too far off.",
        ),
        (
            "print(kernel.no_such_result)",
            "not checked",
            "warning",
            "own run broke off after these launches: AttributeError",
        ),
    ],
)
def test_launches_keep_their_cost_where_a_file_fails_after_them_unless_its_own_check_does(
    after: str, status: str, severity: str, words: str, tmp_path: Path
) -> None:
    text = SELFRUN.format(factor=3, after=after)
    (kernel,) = profiled(tmp_path, text, problem=ProblemRef("selfrun", options={"main": True})).kernels
    assert (kernel.latency.us is None) == (severity == "error")
    assert kernel.correctness.status == status
    (finding,) = kernel.findings
    assert (finding.code, finding.line, finding.severity) == ("kernel-raised", 15, severity)
    assert words in finding.message


@pytest.mark.parametrize(
    ("own", "call"),
    [
        ({"module": True}, "kernel(x)"),
        ({"module": True}, "nki.simulate_kernel(kernel, x)"),
        (None, "nki.simulate_kernel(kernel, x)"),
    ],
)
def test_statements_of_the_file_that_launch_and_check_are_its_own_run(
    own: dict[str, Any] | None, call: str, tmp_path: Path
) -> None:
    text = SELFRUN.format(factor=3, after="assert np.allclose(got, 3 * x)").replace(
        "kernel(x)\n", f"{call}\n"
    )
    text = text.replace('if __name__ == "__main__":', "if True:")
    problem = UNWRITTEN if own is None else ProblemRef("selfrun", options=own)
    (kernel,) = profiled(tmp_path, text, problem=problem).kernels
    assert kernel.latency.us is not None
    assert not [f for f in kernel.findings if f.code == "kernel-raised"]
    assert own is None or kernel.case == "x 128x512 float32"


@pytest.mark.parametrize(("second", "runs"), [("silu(y)", 1), ("silu(y) if np.any(y != 0) else y", 2)])
def test_what_host_code_launches_for_values_has_its_cost(
    second: str, runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace has zeros for values; where nothing looks at them, nothing is run twice."""
    modes: list[str] = []

    def counted(mode: Any = "full", *arguments: Any, **keywords: Any) -> Any:
        modes.append(mode)
        return emulated(mode, *arguments, **keywords)

    monkeypatch.setattr("accelopt_profiling.nki.profile.emulated", counted)
    text = SILU.replace(
        "def reference(x):\n    return x", "def reference(x):\n    x = x / (1 + np.exp(-x))\n    return x"
    )
    text += f"\nentry = 'run'\n\ndef run(x):\n    y = silu(x)\n    return {second}\n"
    (kernel,) = profiled(tmp_path, text).kernels
    assert (kernel.ran.launches, kernel.correctness.status) == (2, "passed")
    assert modes == ["full", "trace", *["full"] * runs]


def test_a_latency_that_a_file_asks_for_is_not_a_number(tmp_path: Path) -> None:
    check = "assert np.isnan(kernel.benchmark_result.nc_latency.get_latency_percentile(99))"
    text = SELFRUN.format(factor=3, after=check)
    (kernel,) = profiled(tmp_path, text, problem=ProblemRef("selfrun", options={"main": True})).kernels
    assert not [f for f in kernel.findings if f.severity == "error"]


@pytest.mark.parametrize(
    "before",
    ["raise OSError('no device')", "from nkipy.runtime import K; K(kernel)", "class A(nl.B): pass; A().c"],
)
def test_a_file_whose_own_run_launches_nothing_runs_with_inferred_arguments(
    before: str, tmp_path: Path
) -> None:
    text = SELFRUN.format(factor=3, after="").replace("    got =", f"    {before}\n    got =")
    (kernel,) = profiled(tmp_path, text, problem=ProblemRef("selfrun", options={"main": True})).kernels
    assert kernel.latency.us is not None
    assert kernel.correctness.status == "not checked"


def test_a_file_whose_own_run_fails_in_its_kernel_has_no_cost(tmp_path: Path) -> None:
    text = SELFRUN.format(factor="missing", after="print(got)")
    with pytest.raises(StepFailedError, match="missing"):
        profiled(tmp_path, text, problem=ProblemRef("selfrun", options={"main": True}))


TILES = """
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

def get_inputs():
    return [np.random.standard_normal((256, 512)).astype(np.float32)]

def forward(x):
    return 3 * x

def transform_to_nki_inputs(inputs):
    return [inputs[0].reshape(2, 128, 512)]

def transform_nki_outputs(result, reference):
    return [np.swapaxes(result, 0, 1).reshape(reference.shape)]

@nki.jit
def kernel(x):
    out = nl.ndarray((128, 2, 512), dtype=x.dtype, buffer=nl.shared_hbm)
    for n in range(2):
        nl.store(out[:, n, :], nl.load(x[n]) * 3)
    return out
"""


@pytest.mark.parametrize(("swap", "status"), [("0, 1", "passed"), ("0, 0", "failed")])
def test_outputs_are_compared_in_the_layout_of_the_reference(swap: str, status: str, tmp_path: Path) -> None:
    text = TILES.replace("swapaxes(result, 0, 1)", f"swapaxes(result, {swap})")
    (kernel,) = profiled(tmp_path, text, problem=ProblemRef("nkibench")).kernels
    assert kernel.correctness.status == status, kernel.correctness
    assert ("wrong-result" in [f.code for f in kernel.findings]) == (status == "failed")


IN_PLACE = """\
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

@nki.jit
def scale(x):
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(tile, tile, nl.multiply, {factor})
    nisa.dma_copy(dst=x, src=tile)
    return x

def get_inputs():
    return [np.random.standard_normal((128, 64)).astype(np.float32)]

def reference(x):
    return x * 2
"""


@pytest.mark.parametrize(("factor", "status"), [("2.0", "passed"), ("0.0", "failed")])
def test_the_reference_gets_the_inputs_as_they_were_before_a_kernel_wrote_to_them(
    factor: str, status: str, tmp_path: Path
) -> None:
    (kernel,) = profiled(tmp_path, IN_PLACE.format(factor=factor), target="trn2").kernels
    assert kernel.correctness.status == status, kernel.correctness
