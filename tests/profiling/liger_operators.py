"""Operators of the PyPI package ``liger-kernel``, unmodified, through the profile step, forward and backward.

The wheel is fetched with pip into a cache folder at run time and is no part of this repository. Each operator's own
file is the kernel file; the problem beside it calls the operator and states what PyTorch computes for the same. Run as
a program::

    python tests/profiling/liger_operators.py [OPERATOR ...]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from warm_steps import WarmSteps

VERSION = "0.8.5"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "accelopt-tests" / f"liger-{VERSION}"


@dataclass(frozen=True)
class Operator:
    """``call`` and ``reference`` are expressions over the names of ``inputs``, which are expressions themselves.

    Those in ``gradients`` get one; without any the operator is only run forward.
    """

    inputs: dict[str, str]
    call: str
    reference: str
    gradients: tuple[str, ...] = ()
    tolerance: float | None = None


ROWS = "torch.randn(256, 1024, device='cuda')"
LOGITS = "torch.randn(128, 4096, device='cuda')"
PROBABILITIES = "torch.softmax(torch.randn(128, 4096, device='cuda'), -1)"
VECTOR = "torch.randn(1024, device='cuda')"
F = "torch.nn.functional"

OPERATORS = {
    "rms_norm": Operator(
        {"x": ROWS, "w": VECTOR},
        "op.LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, 'llama', False)",
        "w * x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)",
        ("x", "w"),
    ),
    "layer_norm": Operator(
        {"x": ROWS, "w": VECTOR, "b": VECTOR},
        "op.LigerLayerNormFunction.apply(x, w, b, 1e-6)",
        f"{F}.layer_norm(x, (1024,), w, b, 1e-6)",
        ("x", "w", "b"),
    ),
    "swiglu": Operator(
        {"a": ROWS, "b": ROWS}, "op.LigerSiLUMulFunction.apply(a, b)", f"{F}.silu(a) * b", ("a", "b")
    ),
    "geglu": Operator(
        {"a": ROWS, "b": ROWS},
        "op.LigerGELUMulFunction.apply(a, b)",
        f"{F}.gelu(a, approximate='tanh') * b",
        ("a", "b"),
    ),
    "cross_entropy": Operator(
        {"x": LOGITS, "t": "torch.randint(0, 4096, (128,), device='cuda')"},
        "op.LigerCrossEntropyFunction.apply(x, t, None)[0]",
        f"{F}.cross_entropy(x, t)",
        ("x",),
    ),
    "kl_div": Operator(
        {"x": f"torch.log_softmax({LOGITS}, -1)", "t": PROBABILITIES},
        "op.LigerKLDivLossFunction.apply(x, t, 'batchmean', False, 1e-10)",
        f"{F}.kl_div(x, t, reduction='batchmean')",
        ("x",),
    ),
    "tvd": Operator(
        {"p": PROBABILITIES, "q": PROBABILITIES},
        "op.LigerTVDLossFunction.apply(p, q, None, 'batchmean')",
        "0.5 * (p - q).abs().sum() / p.shape[0]",
        ("p",),
    ),
    "rope": Operator(
        {
            "q": "torch.randn(2, 8, 128, 64, device='cuda')",
            "k": "torch.randn(2, 2, 128, 64, device='cuda')",
            "angles": "torch.outer(torch.arange(128.0), torch.rand(32)).repeat(1, 2)[None].cuda()",
        },
        "torch.cat(op.LigerRopeFunction.apply(q.clone(), k.clone(), angles.cos(), angles.sin()), 1)",
        "torch.cat([t * angles.cos() + torch.cat((-t[..., 32:], t[..., :32]), -1) * angles.sin() for t in (q, k)], 1)",
    ),
    "softmax": Operator(
        {"x": ROWS}, "op.LigerSoftmaxFunction.apply(x)", "torch.softmax(x, -1)", ("x",)
    ),
    "relu_squared": Operator(
        {"x": ROWS}, "op.LigerReLUSquaredFunction.apply(x)", "torch.relu(x) ** 2", ("x",)
    ),
    "dyt": Operator(
        {"x": ROWS, "a": "torch.rand(1, device='cuda')", "g": VECTOR, "b": VECTOR},
        "op.LigerDyTFunction.apply(x, a, g, b)",
        "g * torch.tanh(a * x) + b",
        ("x", "a", "g", "b"),
    ),
    "group_norm": Operator(
        {"x": "torch.randn(8, 32, 256, device='cuda')", "w": "torch.randn(32, device='cuda')",
         "b": "torch.randn(32, device='cuda')"},
        "op.LigerGroupNormFunction.apply(x, w, b, 32, 8, 1e-6)",
        f"{F}.group_norm(x, 8, w, b, 1e-6)",
        ("x", "w", "b"),
    ),
    "fused_add_rms_norm": Operator(
        {"x": ROWS, "r": ROWS, "w": VECTOR},
        "op.LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6, 0.0, 'llama', False)[0]",
        "w * (x + r) * torch.rsqrt(((x + r) ** 2).mean(-1, keepdim=True) + 1e-6)",
        ("x", "r", "w"),
    ),
}  # fmt: skip

PROBLEM = """
import sys
import torch

entry = "drive"
NAMES = {names!r}
GRADIENTS = {gradients!r}

def get_inputs():
    values = [{inputs}]
    return [*values, torch.rand(1).item()]

def run(function, values):
    values = dict(zip(NAMES, values))
    for name in GRADIENTS:
        values[name] = values[name].detach().clone().requires_grad_(True)
    out = function(**values)
    if not GRADIENTS:
        return [out]
    torch.manual_seed(1)
    out.backward(torch.randn(out.shape, device="cuda").to(out.dtype))
    return [out, *(values[name].grad for name in GRADIENTS)]

def reference(*values):
    return run(lambda {arguments}: {reference}, values)

def drive(*values):
    op = sys.modules[{module!r}]
    return run(lambda {arguments}: {call}, values)

sys.modules[{module!r}].drive = drive
"""


@dataclass(frozen=True)
class Outcome:
    """``profiled``: some kernel of the operator has an estimate and its results agree with PyTorch's."""

    operator: str
    profiled: bool
    correctness: str
    checked: float = 0.0
    kernels: dict[str, float | None] = field(default_factory=dict)  # estimate in us
    trouble: list[str] = field(default_factory=list)
    first_seconds: float | None = None
    seconds: float | None = None


def fetch(cache: Path = CACHE) -> Path:
    """The folder that holds the unpacked package.

    Raises:
        RuntimeError: pip cannot get it; its message says why.
    """
    package = cache / "package"
    if not (package / "liger_kernel" / "ops").is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "-q",
            "-d",
            str(cache),
            f"liger-kernel=={VERSION}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise RuntimeError(f"pip cannot download liger-kernel {VERSION}: {done.stderr.strip()}")
        (wheel,) = cache.glob("liger_kernel-*.whl")
        zipfile.ZipFile(wheel).extractall(package)
    return package


def profile_operator(
    steps: WarmSteps, name: str, package: Path, target: str = "h100", detail: bool = False
) -> Outcome:
    """Profile one operator of ``OPERATORS``."""
    operator = OPERATORS[name]
    stem = f"liger_{name}"
    problem = PROBLEM.format(
        names=tuple(operator.inputs),
        gradients=operator.gradients,
        inputs=", ".join(operator.inputs.values()),
        arguments=", ".join(operator.inputs),
        reference=operator.reference,
        call=operator.call,
        module=stem,
    )
    text = (package / "liger_kernel" / "ops" / f"{name}.py").read_text()
    files = {f"{stem}.py": text, "problem.py": problem}
    ref = {"kind": "module", "path": "problem.py"}
    answer = steps.profile(
        files, f"{stem}.py", ref, target=target, detail=detail, import_paths=[str(package)]
    )
    return _outcome(name, answer)


def _outcome(name: str, answer: dict[str, Any]) -> Outcome:
    if answer["error"] is not None:
        return Outcome(name, False, "not checked", trouble=[answer["error"]["message"]])
    if answer["result"] is None:
        return Outcome(name, False, "not checked", trouble=[f"the process ended with {answer['status']}"])
    launched = [k for k in answer["result"] if k["stage"] != "traced"]
    trouble = [
        f"{k['name']}:{f['line']} {f['code']}: {f['message']}"
        for k in launched
        for f in k["findings"]
        if f["severity"] == "error"
    ]
    correctness = launched[0]["correctness"] if launched else {"status": "not checked", "checked": 0.0}
    estimates = {k["name"]: k["latency"]["us"] for k in launched}
    agreed = correctness["status"] == "passed"
    partial = answer["partial"]
    return Outcome(
        name,
        bool(launched) and agreed and not trouble and all(estimates.values()),
        correctness["status"],
        correctness["checked"],
        estimates,
        trouble,
        partial[0]["seconds"] if partial else None,
        partial[-1]["seconds"] if partial else None,
    )


def profile_all(names: list[str] | None = None, cache: Path = CACHE) -> list[Outcome]:
    """Profile the named operators, or all."""
    package = fetch(cache)
    with WarmSteps() as steps:
        return [profile_operator(steps, name, package) for name in names or OPERATORS]


if __name__ == "__main__":
    for outcome in profile_all(sys.argv[1:] or None):
        print(json.dumps(asdict(outcome)))
