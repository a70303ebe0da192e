"""Runs KernelBench's evaluator, ``eval_kernel_against_ref``, as a program on one kernel file.

Arguments: the kernel file, the problem file, a checkout of KernelBench.
"""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path
from typing import Any

from accelopt_benchmarks.device.programs import EvaluatorInput, evaluator_input, tell_judgement

#: What its package imports to speak with models and to read settings; none of it is used to evaluate.
_UNUSED = {"dotenv": ("load_dotenv",), "openai": ("OpenAI",), "litellm": ("completion",), "tqdm": ("tqdm",)}


def stand_in_for_unused() -> None:
    """Empty modules where those packages are not installed."""
    for name, names in _UNUSED.items():
        try:
            importlib.import_module(name)
        except ImportError:
            module = types.ModuleType(name)
            for one in names:
                setattr(module, one, lambda *_, **__: None)
            sys.modules[name] = module


def texts(asked: EvaluatorInput) -> tuple[str, str]:
    """Return the original and the candidate in KernelBench's layout."""
    forward = "(torch.nn.Module):\n    def forward(self, *given):\n        return "
    original = f"{asked.problem}\n\nclass Model{forward}reference(*given)\n\n\ndef get_init_inputs():\n    return []\n"
    return original, f"{asked.kernel}\n\nclass ModelNew{forward}{asked.entry}(*given)\n"


def main() -> None:
    kernel, problem, checkout = map(Path, sys.argv[1:4])
    stand_in_for_unused()
    sys.path.insert(0, str(checkout / "src"))
    import torch

    evaluate: Any = importlib.import_module("kernelbench.eval").eval_kernel_against_ref
    asked = evaluator_input(kernel, problem)
    precision = next((x.dtype for x in asked.given if x.is_floating_point()), torch.float32)
    asked.given.clear()
    original, custom = texts(asked)
    result = evaluate(
        original, custom, num_correct_trials=3, num_perf_trials=50, measure_performance=True, backend="triton",
        precision=precision, device=torch.device("cuda:0"),
    )  # fmt: skip
    accepted = bool(result is not None and result.compiled and result.correctness)
    us = 1000.0 * float(result.runtime) if accepted and result.runtime > 0 else None
    tell_judgement(accepted, us, "" if accepted else str(getattr(result, "metadata", result)))


if __name__ == "__main__":
    main()
