"""What each Triton rule does to a kernel and its launch, and that results stay the same (interpreted on the CPU)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.commented_source import commented, lost
from support.triton_memory_cases import MEMORY_CASES, ROWS, SOFTMAX_ROWS
from support.triton_product_cases import PRODUCT_CASES
from support.triton_rule_cases import CASES as OTHER_CASES
from support.triton_rule_cases import Case
from support.triton_rule_kernels import ADD, IMPORTS, TUNED

from accelopt_agent.rules import catalogue
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement

CASES = [*OTHER_CASES, *PRODUCT_CASES, *MEMORY_CASES]


def rewritten(text: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.name}")
def test_a_rule_rewrites_this_and_nothing_else(case: Case, newline: str) -> None:
    text = (IMPORTS + case.text).replace("\n", newline)
    (kernel,) = find_kernels(text).kernels
    texts = [c.text for c in catalogue.apply(case.rule, text, kernel)]
    if case.changes is None:
        assert texts == []
        return
    assert (IMPORTS + rewritten(case.text, case.changes)).replace("\n", newline) in texts


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.changes], ids=lambda case: f"{case.rule}: {case.name}"
)
def test_other_import_names_are_understood(case: Case) -> None:
    def respell(text: str) -> str:
        text = text.replace("import triton.language as tl", "from triton import language as lang")
        text = text.replace("import triton\n", "import triton as tt\n").replace(
            "triton.language", "TRITON.language"
        )
        return text.replace("tl.", "lang.").replace("triton.", "tt.").replace("TRITON.", "triton.")

    assert case.changes is not None
    text = respell(IMPORTS + case.text)
    texts = [c.text for c in catalogue.apply(case.rule, text, find_kernels(text).kernels[0])]
    assert respell(IMPORTS + rewritten(case.text, case.changes)) in texts


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.changes], ids=lambda case: f"{case.rule}: {case.name}"
)
def test_no_comment_is_lost(case: Case) -> None:
    text = IMPORTS + case.text
    text = commented(text, 1, len(text.splitlines()))
    candidates = catalogue.apply(case.rule, text, find_kernels(text).kernels[0])
    assert candidates
    for candidate in candidates:
        assert lost(text, candidate.text) == [], candidate.text


def test_every_rule_has_a_case_where_it_applies_and_one_where_it_must_not() -> None:
    for rule in catalogue.rules():
        if rule.dialect == "triton":
            assert {c.changes is None for c in CASES if c.rule == rule.name} == {True, False}, rule.name


RUNNER = """
import importlib.util, json, sys
import torch
torch.manual_seed(0)
x = torch.randn(64, 200)
results = {}
for path in sys.argv[1:]:
    spec = importlib.util.spec_from_file_location("case", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    results[path] = module.run(x).double().flatten().tolist()
print(json.dumps(results))
"""


def test_tiles_do_not_shrink_for_a_launch_that_is_too_small_to_tell() -> None:
    (kernel,) = find_kernels(text := IMPORTS + ADD).kernels
    for bound, sizes in (("memory", ["512", "128"]), ("launch", ["512"])):
        measured = KernelMeasurement(kernel.name, kernel.line, "triton", "h100", bound=bound)
        rewrites = catalogue.apply("triton-tile-size", text, kernel, measured)
        assert [c.summary for c in rewrites] == [f"Launch with BLOCK={n} instead of 256." for n in sizes]


@pytest.mark.parametrize(
    ("length", "expected"),
    [(256, ["min(4, triton.cdiv(size, 256))"]), (1024, []), (8192, ["min(16, triton.cdiv(size, 256))"])],
)
def test_warps_follow_a_row_as_far_as_it_was_measured(length: int, expected: list[str]) -> None:
    text = IMPORTS + ADD.replace(
        "    n = x.numel()", "    n = x.numel()\n    size = triton.next_power_of_2(n)"
    )
    text = text.replace("cdiv(n, 256)", "cdiv(n, size)").replace("BLOCK=256", "BLOCK=size")
    (kernel,) = find_kernels(text).kernels
    measured = KernelMeasurement(
        kernel.name, kernel.line, "triton", "h100", configuration=f"BLOCK={length}, num_warps=4, num_stages=3"
    )
    texts = [c.text for c in catalogue.apply("triton-fitting-warps", text, kernel, measured)]
    assert texts == [text.replace("num_warps=4", f"num_warps={count}") for count in expected]


def test_warps_that_a_variable_says_are_bounded() -> None:
    text = IMPORTS + ADD.replace("    n = x.numel()", "    n = x.numel()\n    warps = 8 if n > 4096 else 4")
    text = text.replace("num_warps=4", "num_warps=warps")
    (kernel,) = find_kernels(text).kernels
    measured = KernelMeasurement(
        kernel.name, kernel.line, "triton", "h100", configuration="BLOCK=256, num_warps=4, num_stages=3"
    )
    texts = [c.text for c in catalogue.apply("triton-fitting-warps", text, kernel, measured)]
    assert texts == [text.replace("num_warps=warps", "num_warps=min(warps, 1)")]


def test_warps_that_an_object_keeps_are_bounded() -> None:
    text = IMPORTS + ADD.replace("num_warps=4", "num_warps=ctx.num_warps")
    (kernel,) = find_kernels(text).kernels
    measured = KernelMeasurement(
        kernel.name, kernel.line, "triton", "h100", configuration="BLOCK=256, num_warps=4, num_stages=3"
    )
    texts = [c.text for c in catalogue.apply("triton-fitting-warps", text, kernel, measured)]
    assert texts == [text.replace("num_warps=ctx.num_warps", "num_warps=min(ctx.num_warps, 1)")]


@pytest.mark.parametrize(
    ("written", "length", "expected"),
    [
        ('{"num_warps": warps}', 512, 'lambda args: min(warps(args), triton.cdiv(args["BLOCK"], 256))'),
        ('{"num_warps": warps}', 2048, None),
        (
            '{"BLOCK": size, "num_warps": warps}',
            512,
            'lambda args: min(warps(args), triton.cdiv(args["BLOCK"], 256))',
        ),
        ('{"num_warps": warps, "BLOCK": size}', 512, None),
    ],
    ids=["lanes of the launch", "full warps", "lanes computed before", "lanes computed after"],
)
def test_warps_that_a_heuristic_computes_are_bounded(written: str, length: int, expected: str | None) -> None:
    text = IMPORTS + ADD.replace("@triton.jit", f"@triton.heuristics({written})\n@triton.jit")
    (kernel,) = find_kernels(text).kernels
    measured = KernelMeasurement(
        kernel.name, kernel.line, "triton", "h100", configuration=f"BLOCK={length}, num_warps=8, num_stages=3"
    )
    texts = [c.text for c in catalogue.apply("triton-fitting-warps", text, kernel, measured)]
    rewritten = written.replace('"num_warps": warps', f'"num_warps": {expected}')
    assert texts == ([] if expected is None else [text.replace(written, rewritten)])


def test_another_number_of_rows_comes_after_what_other_rules_make() -> None:
    text = IMPORTS + SOFTMAX_ROWS
    (kernel,) = find_kernels(text).kernels
    rewrites = list(catalogue.proposals(text, kernel))
    rows = [n for n, c in enumerate(rewrites) if c.origin == "rule:triton-program-tile"]
    assert [rewrites[n].variant for n in rows] == [False] + [True] * (len(rows) - 1)
    assert len(rows) > 1
    assert rows[1:] == list(range(len(rewrites) - len(rows) + 1, len(rewrites)))


def test_the_chosen_configuration_is_tried_with_the_warps_that_its_lanes_fill() -> None:
    configs = "[triton.Config({'BLOCK': b}) for b in (64, 256, 8192)]"
    text = IMPORTS + TUNED.replace('[triton.Config({"BLOCK": 256}, num_warps=4)]', configs)
    (kernel,) = find_kernels(text).kernels
    for length, warps in ((64, "1"), (256, "1"), (1024, None), (8192, "16")):
        measured = KernelMeasurement(
            kernel.name,
            kernel.line,
            "triton",
            "h100",
            configuration=f"BLOCK={length}, num_warps=4, num_stages=3",
        )
        texts = [c.text for c in catalogue.apply("triton-fitting-warps", text, kernel, measured)]
        added = f' + [triton.Config({{"BLOCK": {length}}}, num_warps={warps})]'
        assert texts == ([] if warps is None else [text.replace(configs, configs + added)])


def test_a_computed_block_of_a_loop_is_bounded_with_its_warps() -> None:
    text = IMPORTS + ROWS.replace("BLOCK=64", "BLOCK=min(LIMIT, n), num_warps=16 if n > 99 else 8")
    (kernel,) = find_kernels(text).kernels
    measured = KernelMeasurement(
        kernel.name, kernel.line, "triton", "h100", bound="memory",
        configuration="BLOCK=16384, num_warps=16, num_stages=3",
    )  # fmt: skip
    texts = [c.text for c in catalogue.apply("triton-tile-size", text, kernel, measured)]
    bounded = "BLOCK=min(min(LIMIT, n), {}), num_warps=min(16 if n > 99 else 8, {})"
    assert texts == [
        text.replace(
            "BLOCK=min(LIMIT, n), num_warps=16 if n > 99 else 8", bounded.format(16384 // p, 16 // p)
        )
        for p in (4, 2, 8)
    ]
    whole = text.replace(
        "    scale = ",
        "    total += tl.load(x_ptr + tl.arange(0, BLOCK), mask=tl.arange(0, BLOCK) < n)\n    scale = ",
    )
    (kernel,) = find_kernels(whole).kernels
    assert not list(catalogue.apply("triton-tile-size", whole, kernel, measured))


@pytest.mark.slow
@pytest.mark.triton
def test_rewritten_kernels_compute_the_same(tmp_path: Path) -> None:
    """All cases at once in one interpreter process: importing torch is what takes the time."""
    pairs: list[tuple[str, str, str]] = []
    for number, case in enumerate(c for c in CASES if c.changes and c.runs):
        text = IMPORTS + case.text
        before = tmp_path / f"before_{number}.py"
        before.write_text(text, "utf-8")
        for variant, candidate in enumerate(catalogue.apply(case.rule, text, find_kernels(text).kernels[0])):
            after = tmp_path / f"after_{number}_{variant}.py"
            after.write_text(candidate.text, "utf-8")
            pairs.append((case.name, str(before), str(after)))
    files = sorted({file for _, *both in pairs for file in both})
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, *files],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    results = json.loads(done.stdout)
    for name, before, after in pairs:
        assert results[after] == pytest.approx(results[before], rel=2e-5, abs=2e-5), name
