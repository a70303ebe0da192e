"""A variable that a rule introduces is a new one in the whole module, whatever the module calls its own things."""

from __future__ import annotations

import ast

import pytest
from support.rule_texts import TEXTS, rewrites

from accelopt_agent.syntax.fingerprint import rewrite_fingerprint
from accelopt_profiling.kernels import find_kernels


def bound(text: str) -> set[str]:
    """Return the names that the text binds anywhere: parameters, variables, functions, imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
    return names


@pytest.mark.parametrize("case", TEXTS)
def test_no_name_of_the_module_is_shadowed(case: str) -> None:
    """The names that the rule chooses are given to the module first: then it has to choose others, for the same
    rewrite."""
    rule, text = TEXTS[case]
    (kernel,) = find_kernels(text).kernels
    usual = {rewrite_fingerprint(text, changed, kernel.name) for changed in rewrites(rule, text)}
    for changed in rewrites(rule, text):
        new = sorted(bound(changed) - bound(text))
        taken = text + "\n\n" + "".join(f"{name} = None\n" for name in new)
        for again in rewrites(rule, taken):
            chosen = {
                node.id
                for function in ast.walk(ast.parse(again))
                if isinstance(function, ast.FunctionDef)
                for node in ast.walk(function)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            assert not chosen & set(new), f"{rule} binds {sorted(chosen & set(new))}, which the module has"
            assert rewrite_fingerprint(taken, again, kernel.name) in usual
