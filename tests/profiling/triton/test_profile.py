"""The profile step as the worker runs it, results as they come."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

pytestmark = pytest.mark.triton
ROOT = Path(__file__).resolve().parents[3]
TUTORIALS = ROOT / "examples" / "tutorials"

HEAD = """
import torch
import triton
import triton.language as tl

def get_inputs(n=1000):
    return [torch.randn(n, device="cuda")]

def reference(x):
    return 2 * x

"""
TEMPLATE = f"""{HEAD}
@triton.jit
def double(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    {{body}}

def run(x):
    out = torch.empty_like(x)
    double[({{grid}},)](x, out, x.numel(), B=256)
    return out

entry = "run"
"""


@pytest.fixture(scope="module")
def tutorial(profiles):
    """Return the profile of a tutorial, made once for each."""
    return functools.cache(lambda name: profiles.profile_path(TUTORIALS / f"{name}.py", detail=False))


def profile(
    profiles, body="tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)", grid="4", text=None
):
    text = text or TEMPLATE.replace("{body}", body).replace("{grid}", grid)
    return profiles.profile({"k.py": text}, "k.py", {"kind": "module"}, detail=False)


def only(answer):
    assert answer["error"] is None, answer["error"]
    (kernel,) = answer["result"]
    return kernel


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "bound", "codes"),
    [("triton_softmax", "memory", []), ("triton_add", "L2", ["uncoalesced"] * 3)],
)
def test_examples(profiles, name, bound, codes):
    answer = profiles.profile_path(ROOT / "examples" / f"{name}.py")
    kernel = only(answer)
    assert kernel["correctness"]["status"] == "passed"
    assert kernel["latency"]["known"] == "estimated"
    assert kernel["latency"]["low_us"] < kernel["latency"]["us"] < kernel["latency"]["high_us"]
    assert kernel["bound"] == bound
    assert [f["code"] for f in kernel["findings"]] == codes
    assert kernel["quantities"]["registers"]["known"] == "compiled"
    stages = [p["kernels"][0]["stage"] for p in answer["partial"]]
    assert stages[0] == "executed"
    assert stages[-1] == "checked"
    assert answer["partial"][0]["kernels"][0]["latency"]["us"] is not None


def test_softmax_counts_are_those_of_its_shape(profiles):
    kernel = only(profiles.profile_path(ROOT / "examples" / "triton_softmax.py", detail=False))
    nbytes = 4096 * 4000 * 4
    assert kernel["quantities"]["load_bytes"]["value"] == nbytes
    assert kernel["quantities"]["load_bytes"]["known"] == "estimated"  # 4 of 4096 programs ran
    assert kernel["quantities"]["sampled_programs"] == {
        "value": 4, "known": "executed", "unit": "programs", "low": None, "high": None,
    }  # fmt: skip
    texts = [line["text"] for line in kernel["lines"]]
    assert texts == ["read ~65.5 MB, masked 2 %", "~16.8 M special operations", "wrote ~65.5 MB, masked 2 %"]
    assert 0 < kernel["correctness"]["compared"] < 0.01 * kernel["correctness"]["of"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("vector_add", ["sum_kernel"]),
        ("fused_softmax", ["row_softmax"]),
        ("matmul", ["product_kernel"]),
        pytest.param(
            "layer_norm", ["forward_kernel", "backward_kernel", "gather_kernel"], marks=pytest.mark.slow
        ),
        pytest.param("attention", ["attention_kernel"], marks=pytest.mark.slow),
    ],
)
def test_files_in_the_tutorials_style_profile_as_they_are(tutorial, name, kernels):
    answer = tutorial(name)
    assert answer["error"] is None, answer["error"]
    assert [k["name"] for k in answer["result"]] == kernels
    for kernel in answer["result"]:
        assert kernel["stage"] == "compiled"
        assert kernel["latency"]["us"] > 0
        assert kernel["lines"]
        assert [f["code"] for f in kernel["findings"] if f["severity"] == "error"] == []


@pytest.mark.slow
def test_layer_norm_reads_its_rows_three_times(tutorial):
    forward = tutorial("layer_norm")["result"][0]
    assert forward["quantities"]["load_bytes"]["value"] == 1151 * 1024 * 2 * 5  # three times X, once W and B
    assert sum("again" in line["text"] for line in forward["lines"]) == 2


def test_autotuned_configurations_are_counted(tutorial):
    assert tutorial("matmul")["result"][0]["quantities"]["autotune_configurations"]["value"] == 4


@pytest.mark.slow
def test_out_of_bounds_is_a_finding_on_its_line(profiles):
    kernel = only(profile(profiles, "tl.store(out + at, 2 * tl.load(x + at), mask=at < n)"))
    (finding,) = [f for f in kernel["findings"] if f["code"] == "out-of-bounds"]
    assert finding["line"] == kernel["line"] + 2
    assert "element 1000 of 1000 in program (3, 0, 0); 24 lanes" in finding["message"]


@pytest.mark.slow
def test_a_result_that_does_not_fit_is_checked_at_smaller_sizes(profiles):
    text = TEMPLATE.replace("{body}", "tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)")
    text = text.replace("n=1000", "n=1 << 28").replace("{grid}", "triton.cdiv(x.numel(), 256)")
    kernel = only(profile(profiles, text=text))
    assert kernel["correctness"]["status"] == "passed"
    assert kernel["case"] == "x 268435456 fp32"
    assert "checked-smaller" in [f["code"] for f in kernel["findings"]]
    assert kernel["latency"]["us"] > 500


def test_a_wrong_result_is_a_finding(profiles):
    kernel = only(profile(profiles, "tl.store(out + at, 3 * tl.load(x + at, mask=at < n), mask=at < n)"))
    assert kernel["correctness"]["status"] == "failed"
    assert "relative L2 error 0.5" in kernel["correctness"]["detail"]
    assert "wrong-result" in [f["code"] for f in kernel["findings"]]


def test_elements_that_nobody_writes_are_wrong(profiles):
    kernel = only(profile(profiles, "tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n - 1)"))
    assert kernel["correctness"]["status"] == "failed"
    assert "1 element, first at [999]: nan" in kernel["correctness"]["detail"]


IN_PLACE = """
import torch
import triton
import triton.language as tl

@triton.jit
def add_kernel(x, total, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    m = at < n
    tl.store(total + at, tl.load(x + at, mask=m) {op} tl.load(total + at, mask=m), mask=m)

def add_into(x, total):
    add_kernel[(triton.cdiv(x.numel(), 256),)](x, total, x.numel(), B=256)

def get_inputs(n=1000):
    return [torch.randn(n), torch.randn(n)]

def reference(x, total):
    total += x
"""


@pytest.mark.parametrize(("op", "status"), [("+", "passed"), ("-", "failed")])
def test_a_kernel_that_writes_in_place(profiles, op, status):
    kernel = only(profile(profiles, text=IN_PLACE.replace("{op}", op)))
    assert kernel["correctness"]["status"] == status


def test_an_error_while_interpreting_is_on_its_line(profiles):
    kernel = only(profile(profiles, 'tl.static_assert(B < 4, "B is too large")'))
    errors = [(f["code"], f["line"]) for f in kernel["findings"] if f["code"] == "kernel-raised"]
    assert ("kernel-raised", kernel["line"] + 2) in errors


def test_a_function_that_this_triton_lacks_is_told_with_the_version_that_has_it(profiles):
    kernel = only(profile(profiles, "tl._experimental_descriptor_load(x, [0], [B], tl.float32)"))
    finding = next(f for f in kernel["findings"] if f["code"] == "kernel-raised")
    assert "tl._experimental_descriptor_load is gone since Triton 3.4" in finding["message"]
    assert finding["line"] == kernel["line"] + 2


def test_a_launch_of_no_programs_is_told(profiles):
    text = TEMPLATE.replace("{body}", "tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)")
    kernel = only(profile(profiles, text=text.replace("{grid}", "x.numel() // (1 << 20)")))
    (finding,) = [f for f in kernel["findings"] if f["code"] == "never-launched"]
    assert finding["message"].startswith(
        "double was launched with a grid of 0 x 1 x 1 in the run that was profiled: no"
    )
    assert kernel["latency"]["known"] == "not measured"


def test_a_grid_that_comes_from_values_is_that_of_the_real_ones(profiles):
    text = TEMPLATE.replace("{body}", "tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)")
    kernel = only(profile(profiles, text=text.replace("{grid}", "int(x.abs().max() > 0) * 4")))
    assert kernel["latency"]["us"] > 0
    assert kernel["correctness"]["status"] == "passed"


def test_a_kernel_that_nothing_launches(profiles):
    text = TEMPLATE.replace("{body}", "tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)")
    text = text.replace("{grid}", "4") + "\n@triton.jit\ndef unused(x):\n    tl.store(x, 1)\n"
    answer = profile(profiles, text=text)
    double, unused = answer["result"]
    assert double["correctness"]["status"] == "passed"
    assert [f["code"] for f in unused["findings"]] == ["never-launched"]
    assert unused["latency"]["known"] == "not measured"


def test_masked_lanes_are_a_finding(profiles):
    kernel = only(
        profile(profiles, "tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)", grid="7")
    )
    assert {f["code"] for f in kernel["findings"]} == {"masked-lanes"}


@pytest.mark.slow
def test_a_kernel_that_cannot_be_launched_says_so(profiles):
    text = (TUTORIALS / "matmul.py").read_text().replace("(128, 128, 32, 4, 4)", "(256, 256, 128, 4, 8)")
    answer = profiles.profile(
        {"m.py": text}, "m.py", {"kind": "selfrun", "options": {"module": True}}, detail=False
    )
    kernel = only(answer)
    assert kernel["quantities"]["autotune_configurations"]["value"] == 4
    assert "capacity" not in [f["code"] for f in kernel["findings"] if f["severity"] == "error"]
    assert any("shared memory" in f["message"] for f in kernel["findings"])


@pytest.mark.parametrize(
    ("text", "code", "what"),
    [
        (HEAD + "1 / 0\n", "user-error", "ZeroDivisionError"),
        (HEAD + "import nowhere_to_be_found\n", "missing-package", "nowhere_to_be_found"),
        (HEAD + "import triton.not_in_this_version\n", "missing-package", "that is installed has no module"),
        (HEAD + "raise ModuleNotFoundError('half of it is there')\n", "missing-package", "half of it is there"),
        (HEAD + "import sys\nsys.exit(3)\n", "exited", "exit 3"),
        (HEAD.replace("return [torch", "raise ValueError('no data'); return [torch") + "def run(x):\n    return x\n"
         "entry = 'run'\n", "problem-raised", "no data"),
    ],
)  # fmt: skip
def test_errors_of_the_users_code_name_the_line(profiles, text, code, what):
    text += "\n@triton.jit\ndef kernel(x):\n    tl.store(x, 1)\n"
    answer = profile(profiles, text=text)
    assert answer["result"] is None
    assert answer["error"]["code"] == code
    assert what in answer["error"]["message"]
    assert answer["error"]["line"] is not None


def test_no_problem_is_a_finding(profiles):
    answer = profiles.profile({"k.py": HEAD + "@triton.jit\ndef k(x):\n    pass\n"}, "k.py", None)
    assert [f["code"] for f in answer["result"][0]["findings"]] == ["no-problem"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "target",
    [
        pytest.param("a100", marks=pytest.mark.slow),  # each compiles the kernel anew
        pytest.param("b200", marks=pytest.mark.slow),
        "mi300x",
    ],
)
def test_other_targets(profiles, target):
    kernel = only(profiles.profile_path(ROOT / "examples" / "triton_softmax.py", target=target))
    assert kernel["target"] == target
    assert kernel["correctness"]["status"] == "passed"
    assert kernel["quantities"]["registers"]["value"] > 0


def test_a_target_that_is_no_gpu(profiles):
    answer = profiles.profile({"k.py": HEAD}, "k.py", {"kind": "module"}, target="abacus")
    assert answer["error"]["code"] == "unsupported"


OWN_RUN = """
import torch, triton
import triton.language as tl

@triton.jit
def twice(x, y, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

x = torch.randn(4096, device="cuda")
y = torch.empty_like(x)
twice[(16,)](x, y, 4096, B=256)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "severity", "message"),
    [
        (
            "assert torch.allclose(y, x * 3)\n",
            "error",
            "The file's own check failed: AssertionError: torch.allclose(y, x * 3) does not hold.",
        ),
        ("assert torch.allclose(y, x * 2)\n", "", None),
        ("x.nothing()\n", "warning", "The file's own run broke off after these launches: AttributeError"),
    ],
)
def test_a_file_that_runs_itself_and_fails_says_so(profiles, ending, severity, message):
    answer = profiles.profile(
        {"m.py": OWN_RUN + ending}, "m.py", {"kind": "selfrun", "options": {"module": True}}
    )
    kernel = only(answer)
    assert kernel["latency"]["known"] == ("not measured" if severity == "error" else "estimated")
    ends = [f for f in kernel["findings"] if f["code"] == "kernel-raised"]
    if message is None:
        assert ends == []
    else:
        assert [(f["severity"], f["line"]) for f in ends] == [(severity, 13)]
        assert ends[0]["message"].startswith(message)


ONLY_NAMES_ITS_LAUNCHER = (
    OWN_RUN.partition("x = torch")[0]
    + """
def run(x):
    y = torch.empty_like(x)
    twice[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), B=256)
    return y

def install():
    globals()["__call__"] = run

install()
"""
)


def test_a_file_whose_own_run_launches_nothing_runs_with_inferred_arguments(profiles):
    files = {"m.py": ONLY_NAMES_ITS_LAUNCHER}
    kernel = only(
        profiles.profile(files, "m.py", {"kind": "selfrun", "options": {"module": True}}, detail=False)
    )
    assert kernel["latency"]["known"] == "estimated"
    assert kernel["case"].startswith("x ")


def test_what_does_not_compile_with_inferred_arguments_may_be_theirs(profiles):
    body = "tl.store(out + at, at + tl.sum(tl.dot(tl.zeros((16, 8), tl.float32), tl.zeros((8, 16), tl.float32))))"
    options = {"inferred": True, "unreferenced": True}
    text = TEMPLATE.replace("{body}", body).replace("{grid}", "3")
    kernel = only(
        profiles.profile({"k.py": text}, "k.py", {"kind": "module", "options": options}, detail=False)
    )
    assert kernel["latency"]["us"] is None
    severities = {f["code"]: f["severity"] for f in kernel["findings"]}
    assert severities["does-not-compile"] == "information"
    assert "inferred-size" not in severities, "there is no time of which the launch takes most"


COST_ONLY = """
@triton.jit
def double(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

def run(x):
    {after}
    out = torch.empty_like(x)
    double[(4,)](x, out, x.numel(), B=256)
    return out

entry = "run"

def reference(x):
    raise ValueError("nobody asks for the reference")
"""


@pytest.mark.parametrize("extent", ["cost", "cost on inputs"])
def test_the_cost_alone_needs_no_reference(profiles, extent):
    text = HEAD + COST_ONLY.replace("{after}", "pass")
    answer = profiles.profile({"k.py": text}, "k.py", {"kind": "module"}, detail=False, extent=extent)
    kernel = only(answer)
    assert kernel["latency"]["us"] > 0
    assert (kernel["stage"], kernel["correctness"]["status"]) == ("compiled", "not checked")


def test_the_cost_is_counted_on_the_inputs_where_zeros_do_not_do(profiles):
    text = HEAD + COST_ONLY.replace("{after}", "assert x.abs().sum() > 0")
    answer = profiles.profile({"k.py": text}, "k.py", {"kind": "module"}, detail=False, extent="cost")
    assert only(answer)["latency"]["us"] > 0


def test_large_convolutions_and_their_gradients_are_not_computed_on_zeros(monkeypatch):
    import torch

    from accelopt_profiling.triton.capture import hollow_tensors
    from accelopt_profiling.triton.capture.install import emulated

    computed = []
    monkeypatch.setattr(hollow_tensors, "_untouched", lambda *a: computed.append(a[0].__name__))
    for most, left_out in ((1e9, []), (1e3, ["conv2d", "convolution_backward", "convolution_backward"])):
        monkeypatch.setattr(hollow_tensors, "_LARGE_PRODUCT", most)
        with emulated("h100", sample=1, hollow=True):
            x, w = torch.zeros(2, 4, 8, 8, device="cuda"), torch.zeros(4, 4, 3, 3, device="cuda")
            y = torch.nn.functional.conv2d(x, w)
            torch.nn.grad.conv2d_input(x.shape, w, y)
            torch.nn.grad.conv2d_weight(x, w.shape, y)
        assert computed == left_out


def test_a_large_tensor_of_a_hollow_run_keeps_that_it_wants_a_gradient():
    torch = pytest.importorskip("torch")
    from accelopt_profiling.targets import load_gpu
    from accelopt_profiling.triton.capture.torch_device import gpu_on_cpu

    with gpu_on_cpu(load_gpu("h100"), hollow=True):
        x = torch.zeros(4096, 8192, device="cuda").requires_grad_()
        drawn = torch.rand_like(x, requires_grad=True)
        turned = torch.zeros(4096, 8192, device="cuda").t_()
        tensor = torch.zeros(4096, 8192, device="cuda").add_(1)
    assert x.requires_grad
    assert drawn.requires_grad
    assert turned.shape == (8192, 4096)
    assert tensor.sum() == 0


@pytest.mark.slow
def test_zeros_for_inputs_lie_where_a_device_would_put_them():
    torch = pytest.importorskip("torch")
    from accelopt_profiling.targets import load_gpu
    from accelopt_profiling.triton.capture.torch_device import gpu_on_cpu

    with gpu_on_cpu(load_gpu("h100"), hollow=True):
        x, layer = torch.rand(1 << 20, device="cuda"), torch.nn.Linear(4, 4, device="cuda")
    assert x.data_ptr() % 256 == 0
    assert layer.weight.shape == (4, 4)


THREE_LAUNCHES = """
import torch
import triton
import triton.language as tl

@triton.jit
def double(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

for n in (1000, 1 << 22, 1 << 20):
    x = torch.zeros(n, device="cuda")
    double[(triton.cdiv(n, 256),)](x, torch.empty_like(x), n, B=256)
"""


def test_the_cost_is_stated_for_the_launch_that_is_asked_for(profiles):
    def cost(**rest):
        problem = {"kind": "selfrun", "options": {"module": True}}
        files = {"k.py": THREE_LAUNCHES}
        return only(profiles.profile(files, "k.py", problem, detail=False, extent="cost", **rest))

    costliest, last, another_run = (
        cost(),
        cost(launches={"double": [2, 3]}),
        cost(launches={"double": [2, 9]}),
    )
    assert [k["launch"] for k in (costliest, last, another_run)] == [1, 2, 1]
    assert costliest["case"].startswith(f"x {1 << 22} ")
    assert last["case"].startswith(f"x {1 << 20} ")
    each = costliest["launches"]
    assert [launch["latency"] for launch in each][1:] == [costliest["latency"], last["latency"]]
    assert each[2]["at_scale"]["us"] == last["quantities"]["time_at_scale"]["value"]
