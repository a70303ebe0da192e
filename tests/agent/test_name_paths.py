"""One table of how a name can be bound, and what each reader of a text takes it for."""

from __future__ import annotations

import ast

import pytest

from accelopt_agent.migration.spelling import ModuleNames
from accelopt_agent.rules.analysis.parsed_source import ParsedSource
from accelopt_agent.rules.analysis.rule_context import open_context
from accelopt_agent.syntax.token_lines import read_tokens
from accelopt_memory.features import kernel_features
from accelopt_profiling.gate.reading.facts import Facts
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.name_paths import all_import_paths, dotted_path, import_paths

#: An import, and what it binds.
IMPORTS = {
    "import triton": {"triton": "triton"},
    "import triton.language": {"triton": "triton"},
    "import triton.language as tl": {"tl": "triton.language"},
    "import triton, torch.nn as nn": {"triton": "triton", "nn": "torch.nn"},
    "from triton import language": {"language": "triton.language"},
    "from triton import language as tl, jit": {"tl": "triton.language", "jit": "triton.jit"},
    "from triton.language import *": {"*": "triton.language.*"},
    "from package.compat import triton, tl": {"triton": "triton", "tl": "triton.language"},
    "from .compat import tl as language": {"language": "triton.language"},
    "from .compat import rows": {"rows": ".compat.rows"},
    "from .. import rows as r": {"r": "..rows"},
    "from triton.tools import tl": {"tl": "triton.tools.tl"},
}
#: What a file says, an expression in it, and its path.
EXPRESSIONS = [
    ("import triton", "triton.language.load", "triton.language.load"),
    ("import triton.language as tl", "tl.load", "triton.language.load"),
    ("from triton.language import load as read", "read", "triton.language.load"),
    ("from package.compat import tl", "tl.load", "triton.language.load"),
    ("import importlib as i", "i.import_module('triton').jit", "triton.jit"),
    ("", "__import__('triton').jit", "triton.jit"),
    ("import triton.language as tl", "tl.load(x).to", None),
    ("import torch", "tl.load", None),
]
KERNEL = """{}


@{}
def kernel(x_ptr, out_ptr, n, BLOCK: {}.constexpr):
    offsets = {}.arange(0, BLOCK)
    {}.store(out_ptr + offsets, {}.load(x_ptr + offsets))
"""
#: The imports of a file that runs without Triton too.
OPTIONAL = """try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None
    tl = None"""
#: The head of a file, the decorator of its kernel, and its name of ``triton.language``.
HEADS = [
    ("import triton\nimport triton.language as tl", "triton.jit", "tl"),
    ("import triton", "triton.jit", "triton.language"),
    ("from triton import jit, language", "jit", "language"),
    ("from package.compat import triton, tl", "triton.jit", "tl"),
    (OPTIONAL, "triton.jit", "tl"),
]


@pytest.mark.parametrize("text", IMPORTS)
def test_an_import_binds_its_names(text: str) -> None:
    (node,) = ast.parse(text).body
    assert isinstance(node, (ast.Import, ast.ImportFrom))
    assert import_paths(node) == IMPORTS[text]


@pytest.mark.parametrize(("head", "expression", "path"), EXPRESSIONS)
def test_an_expression_has_the_path_that_it_was_imported_as(
    head: str, expression: str, path: str | None
) -> None:
    tree = ast.parse(f"{head}\nvalue = {expression}\n")
    statement = tree.body[-1]
    assert isinstance(statement, ast.Assign)
    assert dotted_path(statement.value, all_import_paths(tree).get) == path
    assert Facts((), tree).dotted(statement.value) == path


@pytest.mark.parametrize(("head", "decorator", "language"), HEADS)
def test_all_readers_of_a_kernel_know_the_name_of_triton_language(
    head: str, decorator: str, language: str
) -> None:
    text = KERNEL.format(head, decorator, *[language] * 4)
    (kernel,) = find_kernels(text).kernels
    assert kernel.made_by == "triton.jit"
    names = open_context(ParsedSource(text), kernel).names
    assert names.spelled("triton.language.load") == f"{language}.load"
    assert set(kernel_features(text).calls) == {"tl.arange", "tl.load", "tl.store"}
    store = Facts((kernel,), ast.parse(text)).tree.body[-1]
    assert isinstance(store, ast.FunctionDef)
    assert isinstance(call := store.body[-1], ast.Expr)
    assert isinstance(call.value, ast.Call)
    assert Facts((kernel,), ast.parse(text)).dotted(call.value.func) == "triton.language.store"


def test_later_bindings_win_and_parameters_hide() -> None:
    text = KERNEL.format(
        "import torch as tl\nimport triton\nimport triton.language as tl", "triton.jit", *["tl"] * 4
    )
    (kernel,) = find_kernels(text).kernels
    assert open_context(ParsedSource(text), kernel).names.spelled("triton.language") == "tl"
    hidden = text.replace("x_ptr, out_ptr", "tl, out_ptr").replace(
        "tl.constexpr", "triton.language.constexpr"
    )
    (kernel,) = find_kernels(hidden).kernels
    assert open_context(ParsedSource(hidden), kernel).names.spelled("triton.language") == "triton.language"


def test_a_migration_knows_nki_s_names_alone() -> None:
    tree = ast.parse(
        "import neuronxcc.nki as nki\nfrom neuronxcc.nki.language import load as read\nimport numpy as np\n"
    )
    names = ModuleNames.of(tree)
    assert names.names == {"nki": "neuronxcc.nki", "read": "neuronxcc.nki.language.load"}
    assert names.below(ast.parse("nki.isa.activation", mode="eval").body, "isa") == "activation"


def test_the_tokens_of_a_text_know_its_imports() -> None:
    imports = read_tokens(
        "import triton.language as tl\nfrom .rows import width\nx = tl.load(width)\n"
    ).imports
    assert imports == {"triton.language": "tl", ".rows.width": "width"}
