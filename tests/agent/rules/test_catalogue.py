"""The catalogue as data, the promises that every rule keeps, and what happens when one does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from accelopt_agent.rules import catalogue
from accelopt_agent.rules.analysis.edits import ByteEdit, OverlappingEditsError, apply_edits
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement

ROOM = Path(catalogue.__file__).parent

KERNEL = """import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(x, w):
    out = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(4):
        scale = nl.load(w[0:128, 0:1])
        tile = nl.load(x[i, 0:128, 0:512])
        nl.store(out[0:128, 0:512], nl.multiply(tile, scale))
    return out
"""


def test_each_rule_has_a_file_and_each_file_a_rule() -> None:
    listed = {(rule.dialect, rule.module) for rule in catalogue.rules()}
    files = {(d, f.stem) for d in ("nki", "triton") for f in (ROOM / d).glob("*.py") if f.stem != "__init__"}
    assert listed == files
    assert len({rule.name for rule in catalogue.rules()}) == len(catalogue.rules())


@pytest.mark.parametrize("rule", catalogue.rules(), ids=lambda rule: rule.name)
def test_a_rule_says_what_it_does(rule: catalogue.Rule) -> None:
    assert rule.name.startswith(f"{rule.dialect}-")
    assert rule.title
    assert rule.applies.endswith(".")
    assert rule.source
    assert rule.moves
    assert set(rule.moves.values()) <= {"up", "down"}


def test_a_rule_that_raises_does_not_take_the_others_down(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(subject: RuleContext) -> Iterator[Rewrite]:
        raise RuntimeError("a bug in a rule")
        yield

    monkeypatch.setattr("accelopt_agent.rules.nki.reuse_load.rewrites", broken)
    kernel = find_kernels(KERNEL).kernels[0]
    origins = {c.origin for c in catalogue.proposals(KERNEL, kernel)}
    assert "rule:nki-hoist-load" in origins
    assert "nki-reuse-load failed on kernel kernel" in caplog.text
    with pytest.raises(RuntimeError):
        catalogue.apply("nki-reuse-load", KERNEL, kernel)


@pytest.mark.parametrize(
    ("edits", "complaint"),
    [
        ([ByteEdit(0, 6, "import os; import")], "outside"),
        ([ByteEdit(KERNEL.index("scale"), KERNEL.index("scale") + 5, "(")], "parse"),
        (
            [ByteEdit(KERNEL.index("def kernel") + 4, KERNEL.index("def kernel") + 10, "other")],
            "lost the kernel",
        ),
    ],
)
def test_a_rule_that_breaks_its_promise_is_refused(
    monkeypatch: pytest.MonkeyPatch, edits: list[ByteEdit], complaint: str
) -> None:
    monkeypatch.setattr(
        "accelopt_agent.rules.nki.reuse_load.rewrites", lambda _: iter([Rewrite(tuple(edits), "wrong")])
    )
    with pytest.raises(catalogue.RuleError, match=complaint):
        catalogue.apply("nki-reuse-load", KERNEL, find_kernels(KERNEL).kernels[0])


def test_what_helps_against_the_bound_comes_first() -> None:
    kernel = find_kernels(KERNEL).kernels[0]
    applying = {c.origin.removeprefix("rule:") for c in catalogue.proposals(KERNEL, kernel)}
    for rule in catalogue.rules():
        if rule.dialect != "nki" or not rule.helps:
            continue
        measurement = KernelMeasurement("kernel", kernel.line, "nki", "trn1", bound=rule.helps[0])
        first = next(catalogue.proposals(KERNEL, kernel, measurement)).origin.removeprefix("rule:")
        helping = {r.name for r in catalogue.rules() if rule.helps[0] in r.helps}
        assert first in helping or not helping & applying


def test_proposals_are_distinct_whole_files() -> None:
    candidates = list(catalogue.proposals(KERNEL, find_kernels(KERNEL).kernels[0]))
    texts = [c.text for c in candidates]
    assert texts
    assert len(set(texts)) == len(texts)
    assert KERNEL not in texts
    for candidate in candidates:
        ast.parse(candidate.text)
        assert candidate.kernel == "kernel"
        assert candidate.steps == (candidate.origin,)


@pytest.mark.parametrize("text", ["def (", "x = 1\n", ""])
def test_a_file_that_changed_gives_nothing(text: str) -> None:
    assert list(catalogue.proposals(text, find_kernels(KERNEL).kernels[0])) == []


def test_edits_keep_order_and_refuse_to_overlap() -> None:
    assert (
        apply_edits(b"abc", [ByteEdit(3, 3, "!"), ByteEdit(1, 2, "B\n"), ByteEdit(1, 1, "<")], "\r\n")
        == b"a<B\r\nc!"
    )
    with pytest.raises(OverlappingEditsError):
        apply_edits(b"abc", [ByteEdit(0, 2, ""), ByteEdit(1, 3, "")])


PRODUCT = """import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(x, w):
    m, k = x.shape
    out = nl.ndarray((m, 512), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(m // 128):
        total = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
        for j in nl.affine_range(k // 128):
            turned = nl.load(x[j * 128 + nl.arange(128)[:, None], i * 128 + nl.arange(128)[None, :]])
            w_tile = nl.load(w[j * 128 + nl.arange(128)[:, None], nl.arange(512)[None, :]])
            total += nl.matmul(turned, w_tile, transpose_x=True)
        nl.store(out[i * 128 + nl.arange(128)[:, None], nl.arange(512)[None, :]], value=nl.copy(total))
    return out
"""


def test_a_rule_is_proposed_after_the_rules_that_lead_to_it() -> None:
    """Parts of a tile that each iteration loads again cost more than their products save; kept, they are made once."""
    kernel = find_kernels(PRODUCT).kernels[0]
    of_parts = [c for c in catalogue.proposals(PRODUCT, kernel) if c.origin == "rule:nki-bf16-parts"]
    both = next(c for c in of_parts if len(c.steps) > 1)
    assert both.steps == ("rule:nki-keep-computed", "rule:nki-bf16-parts")
    body = both.text[both.text.index("def kernel") :]
    before, _, inside = body.partition("for i in")
    assert "w_tile_kept_high[" in before
    assert "w_tile_kept_high = " not in inside
    assert all(name in {r.name for r in catalogue.rules()} for r in catalogue.rules() for name in r.after)
