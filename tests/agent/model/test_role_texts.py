"""What the roles are told besides the code: facts, functions, the problem, and another line in each question."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from accelopt_agent.model.briefing import attack, hidden_lines, problem_text
from accelopt_agent.model.edit_bounds import Bounds, bounds_of
from accelopt_agent.model.edits import LEFT_OUT, numbered
from accelopt_agent.model.role_prompts import (
    CHARACTERS,
    dialect_functions,
    dialect_text,
    mistakes,
    target_text,
)
from accelopt_profiling.examination import examine
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import Dialect
from accelopt_profiling.targets import target_names

REDESIGNS = Path(__file__).parents[1] / "redesigns"


@pytest.mark.parametrize(
    ("file", "bound", "first"),
    [
        ("attention.py", "dram", "tl.load_tensor_descriptor"),
        ("attention.py", "tensor core", "tl.dot"),
        ("nki_rmsnorm.py", "DMA", "nl.load"),
        ("nki_today_scale.py", "VectorE", "nisa.tensor_tensor"),
    ],
)
def test_functions_for_what_limits_the_kernel_come_first(file: str, bound: str, first: str) -> None:
    text = (REDESIGNS / file).read_text("utf-8")
    functions_text = dialect_text(find_kernels(text).kernels[0], bound, text)
    assert f"{first}" in functions_text[: 3 * len(functions_text) // 4]
    assert len(functions_text) < CHARACTERS + 2500


def test_a_function_that_the_plan_speaks_of_is_told_first() -> None:
    text = (REDESIGNS / "nki_rmsnorm.py").read_text("utf-8")
    functions_text = dialect_text(
        find_kernels(text).kernels[0], "DMA", text, "Sum the squares by activation_reduce."
    )
    assert "- nisa.activation_reduce(" in functions_text[:600]


def test_of_a_long_file_what_the_problem_does_not_run_is_left_out() -> None:
    text = (REDESIGNS / "layer_norm.py").read_text("utf-8")
    bounds = Bounds(frozenset({"layer_norm"}), frozenset({"get_inputs", "reference"}))
    assert hidden_lines(text, bounds) == frozenset()
    idle = "".join(f"\n\ndef idle_{k}(x):\n    return x\n" for k in range(200))
    long = f"{text}{idle}\n\nLAST = 1\n"
    numbered_text = numbered(long, hidden=hidden_lines(long, bounds))
    assert numbered_text.startswith(numbered(text.rstrip("\n")))
    assert "idle_" not in numbered_text
    assert numbered_text.count(LEFT_OUT) >= 1
    assert " LAST = 1" in numbered_text


def test_a_known_mistake_names_only_functions_that_its_dialects_have() -> None:
    names = {dialect: {f["name"] for f in functions} for dialect, functions in dialect_functions().items()}
    for mistake in mistakes():
        mentions = set(re.findall(r"\b(?:nl|nisa|tl)\.\w+", mistake.text))
        for dialect in ["triton"] if mistake.dialect == "triton" else ["neuronxcc.nki", "nki"]:
            assert mentions <= names[dialect] | {"tl.constexpr"}, (dialect, mistake.text)


def test_every_function_has_its_parameters_and_no_dialect_is_empty() -> None:
    for functions in dialect_functions().values():
        assert len(functions) > 80
        assert all(f["signature"].startswith("(") for f in functions)


def test_every_target_is_told_and_an_unknown_one_says_nothing() -> None:
    for name in target_names():
        assert len(target_text(name)) > 200
        assert "{" not in target_text(name)
    assert target_text("no such thing") == ""


def test_the_problem_is_told_with_its_entry_its_source_and_the_tolerance(tmp_path: Path) -> None:
    text = "import nki\n\n@nki.jit\ndef k(x):\n    return x\n"
    (tmp_path / "k.py").write_text(text)
    (tmp_path / "k_problem.py").write_text(
        "def get_inputs():\n    return [1]\n\n\ndef reference(x):\n    return x + 41\n"
    )
    file = examine(tmp_path / "k.py", text)
    briefing_text = problem_text(file, bounds_of(text, "k", file.problem.ref, file.problem.files.values()))
    assert "calls `k`" in briefing_text
    assert "return x + 41" in briefing_text
    assert "float32 2e-05" in briefing_text


@pytest.mark.parametrize("dialect", ["triton", "nki"])
def test_the_questions_of_a_round_differ(dialect: Dialect) -> None:
    attacks = [attack(dialect, "dram", count) for count in range(6)]
    assert len(set(attacks)) == 6
    assert "Others were asked" not in attacks[0]
    assert "Others were asked" in attacks[1]
