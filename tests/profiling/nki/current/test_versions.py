"""A version of the current dialect has what it has; and how much of a library's calls is emulated."""

from __future__ import annotations

import pytest
from support.nki_current_source import FIRST_LINE, A, run

from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.nki.current.versions import VARIABLE, UnknownVersionError, changes, emulated_version


@pytest.mark.parametrize(
    ("version", "body", "words"),
    [
        ("0.5", "nl.fori_loop(0, 1, print)", "fori_loop came with NKI 0.6; the emulated version is 0.5"),
        ("0.4", "x = sbuf(128, 8).permute((0, 1))", "permute came with NKI 0.5; the emulated version is 0.4"),
        ("0.7", "nisa.tensor_copy_dynamic_src(a, a)", "gone since NKI 0.4"),
    ],
)
def test_a_version_has_what_it_has(
    version: str, body: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, version)
    fault = run(body + "\nreturn a", A).fault
    assert fault is not None
    assert words in fault.message


@pytest.mark.parametrize(("version", "count"), [("0.6", 0), ("0.7", 1)])
def test_what_is_deprecated_is_told_as_information(
    version: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, version)
    findings = run("for i in nl.affine_range(2):\n    pass\nreturn a", A).findings
    assert [(f.code, f.line, f.severity) for f in findings] == [
        ("deprecated", FIRST_LINE, "information")
    ] * count


def test_a_version_that_there_is_not_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "9.9")
    with pytest.raises(UnknownVersionError, match="the versions of NKI are 0"):
        emulated_version()


def test_every_entry_of_the_version_table_says_when() -> None:
    for kind in ("names", "methods"):
        for name, entry in changes(kind).items():
            assert set(entry) & {"added", "removed", "deprecated"}, name
            assert "added" in entry or entry["instead"], name


def test_kernels_of_both_dialects_are_found() -> None:
    text = (
        "import nki\nimport neuronxcc.nki as old\nfrom nki import jit\n\n"
        "@nki.jit\ndef one(x):\n    return x\n\n@old.jit\ndef two(x):\n    return x\n\n"
        "@jit\ndef three(x):\n    return x\n"
    )
    assert [(k.name, k.dialect) for k in find_kernels(text).kernels] == [
        ("one", "nki"),
        ("two", "nki"),
        ("three", "nki"),
    ]
