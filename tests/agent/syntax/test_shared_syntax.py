"""The syntax of a text is one tree for all who read it: nobody changes it."""

from __future__ import annotations

import ast
from contextlib import suppress

import pytest

from accelopt_agent.rules.catalogue import proposals
from accelopt_agent.syntax.fingerprint import file_fingerprint, rewrite_fingerprint
from accelopt_agent.syntax.kernel_change import kernel_changed, only_kernel_changed
from accelopt_agent.syntax.token_lines import read_tokens
from accelopt_agent.transfer.edit_transfer import is_sound
from accelopt_benchmarks.checkout import EXAMPLES
from accelopt_memory.features import kernel_features
from accelopt_profiling.gate.reading.read import limits_of_sizes, named_values, read, uses_files
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.problems.discovery.template import entry_functions, guessed_call
from accelopt_profiling.source_text import syntax_of

FILES = sorted(path for path in EXAMPLES.rglob("*.py") if not path.stem.endswith("_problem"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_whoever_reads_a_text_leaves_its_tree_as_it_is(path):
    text = path.read_text(encoding="utf-8")
    kernels = find_kernels(text).kernels
    for kernel in kernels:
        for candidate in proposals(text, kernel):
            rewrite_fingerprint(text, candidate.text, kernel.name)
            kernel_changed(text, candidate.text, kernel.name)
            only_kernel_changed(text, candidate.text, kernel.name)
            assert is_sound(candidate.text, text, kernel.name)
            read(candidate.text, text)
        for function in entry_functions(text, [kernel]):
            guessed_call(text, function)
        with suppress(ValueError):
            kernel_features(text, kernel.name)
    file_fingerprint(text)
    read_tokens(text)
    uses_files(text), limits_of_sizes(text), named_values(text)
    assert syntax_of(text) is syntax_of(text)
    assert ast.dump(syntax_of(text), include_attributes=True) == ast.dump(
        ast.parse(text), include_attributes=True
    )
