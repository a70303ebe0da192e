"""Lists the calls of each operator, and the PyTorch code that computes the same. The kernel file is the operator's."""

from __future__ import annotations

from dataclasses import dataclass


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


def problem_text(name: str) -> str:
    """Return the problem file for the operator: it runs the operator out of the kernel file
    ``liger_<name>.py``."""
    operator = OPERATORS[name]
    return PROBLEM.format(
        names=tuple(operator.inputs),
        gradients=operator.gradients,
        inputs=", ".join(operator.inputs.values()),
        arguments=", ".join(operator.inputs),
        reference=operator.reference,
        call=operator.call,
        module=f"liger_{name}",
    )
