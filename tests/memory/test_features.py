from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.silu_kernel import SLOW

from accelopt_benchmarks.memory.similarity import similarity, sketch_jaccard, weighted_jaccard
from accelopt_memory.features import SHINGLES_KEPT, KernelFeatures, kernel_features

TRITON = """
import triton
from triton import language as T
from triton.language.extra import libdevice

@triton.jit
def helper(x):
    return libdevice.tanh(x)

@triton.jit
def kernel(x, y, n, B: T.constexpr):
    "About it."
    offs = T.program_id(0) * B + T.arange(0, B)
    total = T.zeros((B,), dtype=T.float32)
    for k in range(4):
        total += helper(T.load(x + offs + k, mask=offs < n).to(T.float32))
    T.store(y + offs, total, mask=offs < n)
"""


def test_aliases_are_undone_and_helpers_count() -> None:
    own = kernel_features(TRITON)
    assert own.dialect == "triton"
    assert own.calls["tl.load"] == 1
    assert own.calls["tl.store"] == 1
    assert own.calls["libdevice.tanh"] == 1, "the function that the kernel calls is part of it"
    assert own.loops == ("1:range",)
    assert own.dtypes == ("float32",)


def test_both_generations_of_nki_call_functions_by_one_name() -> None:
    new = SLOW.replace("neuronxcc.nki.language", "nki.language")
    new = new.replace("from neuronxcc import nki", "import nki")
    assert kernel_features(SLOW).calls == kernel_features(new).calls
    assert kernel_features(SLOW).calls["nl.sigmoid"] == 1


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda text: re.sub(r"\btile\b", "t", text),
        lambda text: text.replace("128", "512"),
        lambda text: text.replace("    out =", "    # a comment\n\n    out ="),
        lambda text: text.replace("def silu(x):", 'def silu(x):\n    "Says what it does."'),
    ],
    ids=["names", "numbers", "comments", "docstring"],
)
def test_features_are_blind_to_what_does_not_matter(rewrite) -> None:  # type: ignore[no-untyped-def]
    assert rewrite(SLOW) != SLOW
    assert kernel_features(rewrite(SLOW)) == kernel_features(SLOW)


@pytest.mark.parametrize("text", ["def (", "x = 1\n", ""])
def test_a_file_without_the_kernel_has_no_features(text: str) -> None:
    with pytest.raises(ValueError, match="No features"):
        kernel_features(text)
    with pytest.raises(ValueError, match="no kernel nothing"):
        kernel_features(SLOW, "nothing")


@pytest.mark.slow
def test_a_very_long_kernel_keeps_a_bounded_sketch() -> None:
    draw = random.Random(0)
    names = ["exp", "load", "store", "multiply", "add", "sigmoid", "sqrt", "tanh"]
    pick = draw.choice
    body = "".join(f"    a = nl.{pick(names)}(nl.{pick(names)}(a, {n}) + a)\n" for n in range(3000))
    text = SLOW.split("    out =")[0] + body
    assert len(kernel_features(text).shingles) <= SHINGLES_KEPT


counts = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 5))
features = st.builds(
    KernelFeatures,
    dialect=st.sampled_from(["nki", "triton"]),
    calls=counts,
    shingles=st.lists(st.sampled_from("0123456789"), unique=True).map(lambda s: tuple(sorted(s))),
    loops=st.lists(st.sampled_from(["1:range", "2:range"])).map(tuple),
    dtypes=st.lists(st.sampled_from(["float32", "bfloat16"]), unique=True).map(tuple),
    bound=st.none() | st.sampled_from(["memory", "compute"]),
)


@given(features, features)
def test_similarity_is_a_symmetric_share(a: KernelFeatures, b: KernelFeatures) -> None:
    assert 0.0 <= similarity(a, b) <= 1.0
    assert similarity(a, b) == pytest.approx(similarity(b, a))
    if a.calls:
        assert similarity(a, a) == pytest.approx(1.0)
    if a.dialect != b.dialect:
        assert similarity(a, b) == 0.0


def test_the_parts_are_what_their_formulas_say() -> None:
    assert weighted_jaccard({"a": 2, "b": 1}, {"a": 1, "c": 1}) == pytest.approx(1 / 4)
    assert weighted_jaccard({}, {}) is None
    assert sketch_jaccard(("1", "2", "3"), ("2", "3", "4")) == pytest.approx(1 / 2)
    assert sketch_jaccard((), ()) is None


def test_a_kernel_is_more_like_its_relative_than_like_a_stranger() -> None:
    gelu = SLOW.replace("silu", "gelu").replace("nl.sigmoid(tile)", "nl.tanh(nl.multiply(tile, 2.0))")
    softmax = SLOW.replace(
        "nl.multiply(tile, nl.sigmoid(tile))", "nl.exp(tile) / nl.sum(nl.exp(tile), axis=1, keepdims=True)"
    ).replace("nl.affine_range", "nl.sequential_range")
    base = kernel_features(SLOW)
    assert similarity(base, kernel_features(gelu)) > similarity(base, kernel_features(softmax)) > 0
