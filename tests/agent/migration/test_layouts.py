"""However a kernel is laid out, its text in today's NKI computes the same and keeps every comment and import."""

from __future__ import annotations

import ast
import io
import tempfile
import tokenize
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accelopt_agent.migration.file_migration import is_beta1, migrate_text
from accelopt_profiling.jobs import JobFiles
from accelopt_profiling.nki.equivalence import CompareParams, compare_dialects
from accelopt_profiling.nki.tile_facts import FactsParams, tile_facts
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.step_context import StepContext

#: A simple statement, or the head of a compound one and its body.
Node = str | tuple[str, list[Any]]
LOAD = "tile = nl.load(x[i * 64 + rows, columns])"
STORE = "nl.store(out[i * 64 + rows, columns], tile * 2.0)"
KERNELS: dict[str, list[Node]] = {
    "a loop and a flag": [
        "out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)",
        "rows, columns = nl.mgrid[0:64, 0:32]",
        ("for i in nl.affine_range(2):", [LOAD, STORE]),
        ("if add:", ["nl.store(out[0:64, 0:32], nl.load(x[0:64, 0:32]))"]),
        ("else:", ["first = nl.load(x[64:128, 0:32])", "nl.store(out[0:64, 0:32], first)"]),
        "return out",
    ],
    "branches in a loop, and a reduction": [
        "out = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.shared_hbm)",
        "total = nl.zeros((64, 32), dtype=nl.float32)",
        "i_p, i_f = nl.arange(64)[:, None], nl.arange(32)[None, :]",
        (
            "for i in nl.affine_range(2):",
            [
                "part = nl.load(x[i * 64 + i_p, i_f])",
                "total[...] = nl.loop_reduce(x=part, op=np.add, loop_indices=[i])",
            ],
        ),
        ("if add:", ["total += 1.0"]),
        ("elif not add:", ["power = nisa.activation(op=nl.exp, data=total)", "total[...] = power"]),
        "nl.store(out[i_p, i_f], value=total)",
        "return out",
    ],
    "products": [
        "out = nl.ndarray((32, 32), dtype=x.dtype, buffer=nl.shared_hbm)",
        "sums = nl.zeros((32, 32), nl.float32, buffer=nl.psum)",
        (
            "for i in nl.affine_range(2):",
            ["left = nl.load(x[i * 64:i * 64 + 64, 0:32])", "sums += nisa.nc_matmul(left, left)"],
        ),
        ("if add:", [("for j in nl.sequential_range(1):", ["sums += nisa.nc_matmul(left, left)"])]),
        "nl.store(out, sums)",
        "return out",
    ],
}
IMPORTS = [
    "import neuronxcc.nki as nki", "import neuronxcc.nki.language as nl", "import numpy as np", "import os.path",
    "import neuronxcc.nki.isa as nisa", "from neuronxcc.nki.language import par_dim", "import math as m, sys",
]  # fmt: skip
TAIL = [
    "",
    "",
    "def get_inputs():",
    "    return [np.random.default_rng(0).standard_normal((128, 32), dtype=np.float32)]",
    "",
    "",
    "def reference(x):",
    "    return x",
]
DOCSTRING = [
    '"""For each row:',
    "    for i in nl.affine_range(2): nl.store(out, tile)",
    "    # no comment",
    '    """',
]
DECORATORS = [
    ["@nki.jit"],
    ['@nki.jit(mode="simulation")'],
    ["@nki.jit(", '    mode="simulation",  # of the decorator', "    # its end", ")"],
    ["@nki.trace"],
    ["@(", "    nki.jit)"],
]


class Layout:
    """Writes a kernel as the draws of ``data`` say; ``comments`` are those that it wrote."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self._draw = draw
        self.unit = draw(st.sampled_from(["    ", "  ", "\t"]))
        self.comments: list[str] = []

    def chosen(self) -> bool:
        return bool(self._draw(st.integers(0, 2)) == 0)

    def comment(self) -> str:
        if not self.chosen():
            return ""
        self.comments.append(f"# {len(self.comments)}: for x in y; z")
        return "  " + self.comments[-1]

    def joined(self, statements: list[str]) -> str:
        text = statements[0]
        for statement in statements[1:]:
            text += self._draw(st.sampled_from(["; ", ";", " ;\\\n  "])) + statement
        return text + self._draw(st.sampled_from(["", ";"]))

    def simple(self, statement: str, indent: str) -> str:
        """Return a statement that may go over lines."""
        if statement.endswith(")") and "(" in statement and self.chosen():
            head, _, rest = statement.partition("(")
            return f"{head}({self.comment()}\n{indent}{self.unit * 2}{rest}"
        if " = " in statement and self.chosen():
            return statement.replace(" = ", " = \\\n" + indent + self.unit * 3, 1)
        return statement

    def block(self, nodes: list[Node], indent: str) -> list[str]:
        lines: list[str] = []
        waiting = list(nodes)
        while waiting:
            node = waiting.pop(0)
            if self.chosen():
                lines.append(self._draw(st.sampled_from(["", "\f", indent + "\f"])))
            if self.chosen():
                lines.append((indent + self.comment().strip()).rstrip())
            if isinstance(node, str):
                group = [node]
                while waiting and isinstance(waiting[0], str) and self.chosen():
                    group.append(str(waiting.pop(0)))
                texts = group if len(group) > 1 else [self.simple(node, indent)]
                lines.append(indent + self.joined(texts) + self.comment())
                continue
            head, body = node
            if all(isinstance(b, str) for b in body) and self.chosen():
                gap = self._draw(st.sampled_from([" ", "", " \\\n" + indent + self.unit]))
                lines.append(indent + head + gap + self.joined(body) + self.comment())
                continue
            lines.append(indent + head + self.comment())
            lines += self.block(body, indent + self.unit)
        return lines

    def text(self, body: list[Node]) -> str:
        imports = self._draw(st.permutations(IMPORTS))
        lines: list[str] = []
        while imports:
            count = self._draw(st.integers(1, min(3, len(imports))))
            lines.append(self.joined(list(imports[:count])) + self.comment())
            imports = imports[count:]
        decorator = self._draw(st.sampled_from(DECORATORS))
        self.comments += [line[line.index("# ") :] for line in decorator if "# " in line]
        lines += ["", "", *decorator, "def kernel(x, add=True):" + self.comment()]
        if self.chosen():
            lines += [self.unit + DOCSTRING[0], *DOCSTRING[1:]]
        lines += self.block(body, self.unit)
        ends = self._draw(st.sampled_from(["\n", "\r\n"]))
        return "\n".join([*lines, *TAIL, ""]).replace("\n", ends)


def context_of(folder: Path, text: str) -> StepContext:
    (folder / "src").mkdir(parents=True)
    (folder / "src/kernel_file.py").write_bytes(text.encode())
    return StepContext(folder, JobFiles("kernel_file.py", {"kernel_file.py": text}), lambda _: None)


def comments_in(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text, newline="").readline)
    return sorted(t.string for t in tokens if t.type == tokenize.COMMENT)


def bound(text: str) -> set[str]:
    imports = (n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.Import, ast.ImportFrom)))
    return {a.asname or a.name for n in imports for a in n.names}


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(KERNELS)))
def test_a_layout_moves_whole(data: Any, name: str) -> None:
    layout = Layout(data.draw)
    text = layout.text(KERNELS[name])
    ref = ProblemRef("module", None, "kernel")
    with tempfile.TemporaryDirectory() as folder:
        facts = tile_facts(context_of(Path(folder, "facts"), text), FactsParams(ref, "trn2"))
        assert facts.stopped == ""
        moved = migrate_text(text, facts.facts)
        compared = compare_dialects(
            context_of(Path(folder, "compare"), text), CompareParams(ref, moved.text, "trn2")
        )
    assert (moved.unmoved, moved.not_run, compared.not_compared) == ([], [], [])
    assert [(c.case, c.equal, c.detail) for c in compared.cases] == [
        ("the profiled case", True, ""),
        ("the profiled case with add turned", True, ""),
    ]
    assert not is_beta1(moved.text)
    assert comments_in(text) == sorted(layout.comments)
    assert comments_in(moved.text) == comments_in(text)
    assert {"np", "os.path", "m", "sys", "nki", "nl", "nisa"} <= bound(moved.text)
    assert ("\r\n" in text) == ("\r\n" in moved.text)
    assert moved.text.count("\n") == moved.text.count("\r\n") or "\r\n" not in text
    assert moved.text.count("\f") == text.count("\f")
    docstring = ast.get_docstring(
        next(n for n in ast.parse(moved.text).body if isinstance(n, ast.FunctionDef))
    )
    assert (docstring is not None) == ("For each row" in text)


HOST = """\
import neuronxcc.nki as nki, numpy as np
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x, bias=None):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    if bias is not None:
        tile = nl.add(tile, nl.load(bias))
    nl.store(out, tile)
    return out


def get_inputs():
    return [np.ones((128, 32), np.float32)]


def reference(x):
    return x
"""


def test_what_no_case_reaches_is_named(tmp_path: Path) -> None:
    ref = ProblemRef("module", None, "kernel")
    facts = tile_facts(context_of(tmp_path / "facts", HOST), FactsParams(ref, "trn2"))
    assert migrate_text(HOST, facts.facts).not_run == [10]
