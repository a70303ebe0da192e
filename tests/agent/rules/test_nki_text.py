"""What each NKI rule makes of a kernel's text, and of nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.commented_source import commented, lost
from support.nki_rule_cases import CASES, FOOTER, REWRITTEN, Case

from accelopt_agent.rules import catalogue
from accelopt_profiling.kernels import find_kernels


def other_names(text: str) -> str:
    """The same file with other import spellings."""
    for package in ("neuronxcc.nki", "nki"):
        text = text.replace(f"import {package}.language as nl", f"from {package} import language as lang")
        text = text.replace(f"import {package}.isa as nisa", f"from {package} import isa")
    return text.replace("nl.", "lang.").replace("nisa.", "isa.")


SPELLINGS = {
    "as written": lambda text: text,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "other import names": other_names,
    "four more spaces": lambda text: text.replace("\n    ", "\n        "),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_rule_rewrites_this_and_nothing_else(case: Case, spelling: str) -> None:
    spell = SPELLINGS[spelling]
    text = spell(case.whole(case.before))
    (kernel,) = find_kernels(text).kernels
    texts = [c.text for c in catalogue.apply(case.rule, text, kernel)]
    if case.after is None:
        assert texts == []
        return
    assert spell(case.whole(case.after)) in texts
    for changed in texts:
        start, end = text.index("@nki.jit"), text.index("def untouched")
        assert changed.startswith(text[:start])
        assert changed.endswith(text[end:])


@pytest.mark.parametrize("case", REWRITTEN, ids=str)
def test_a_rule_comes_to_an_end(case: Case) -> None:
    """Applied again and again, a rule has nothing left to do (or goes back and forth between two engines)."""
    text, texts = case.whole(case.before), set()
    while text not in texts and len(texts) < 12:
        texts.add(text)
        candidates = catalogue.apply(case.rule, text, find_kernels(text).kernels[0])
        text = candidates[0].text if candidates else text
    assert len(texts) < 12


@pytest.mark.parametrize("case", REWRITTEN, ids=str)
def test_no_comment_is_lost(case: Case) -> None:
    text = case.whole(case.before)
    text = commented(
        text, len(case.header.splitlines()) + 1, len(text.splitlines()) - len(FOOTER.splitlines())
    )
    candidates = catalogue.apply(case.rule, text, find_kernels(text).kernels[0])
    assert candidates
    for candidate in candidates:
        assert lost(text, candidate.text) == [], candidate.text


def test_every_rule_has_a_case_where_it_applies_and_one_where_it_must_not() -> None:
    for rule in catalogue.rules():
        if rule.dialect == "nki":
            kinds = {case.after is None for case in CASES if case.rule == rule.name}
            assert kinds == {True, False}, rule.name
            current = {case.after is None for case in CASES if case.rule == rule.name and case.current}
            assert current == ({True, False} if "nki" in rule.packages else set()), rule.name


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(REWRITTEN),
    st.lists(st.sampled_from(["# note", "", "    ", "x_1 = 1  # ü", "'''text\n    more'''"]), max_size=3),
    st.integers(0, 8),
)
def test_rules_bear_odd_layout(case: Case, lines: list[str], where: int) -> None:
    """Comments, blank lines and strings anywhere in the body: every proposal still parses and keeps its kernel."""
    body = case.whole(case.before).splitlines(keepends=True)
    at = min(len(case.header.splitlines()) + where, len(body) - len(FOOTER.splitlines()))
    indent = body[at][: len(body[at]) - len(body[at].lstrip())]
    text = "".join([*body[:at], *(f"{indent}{line}\n" for line in lines), *body[at:]])
    for kernel in find_kernels(text).kernels:
        for candidate in catalogue.proposals(text, kernel, strict=True):
            assert "kernel" in {k.name for k in find_kernels(candidate.text).kernels}


def test_a_copy_goes_to_scalar_engine_from_trn2_on() -> None:
    case = next(case for case in CASES if case.name == "current: on trn1 ScalarE does not copy")
    text = case.whole(case.before)
    kernel = find_kernels(text).kernels[0]
    offers = {
        target: [c.text for c in catalogue.apply(case.rule, text, kernel, target=target)]
        for target in ("", "trn1", "trn2")
    }
    moved = text.replace(
        "tensor_copy(result, total)", "tensor_copy(result, total, engine=nisa.engine.scalar)"
    )
    assert offers == {"": [], "trn1": [], "trn2": [moved]}
