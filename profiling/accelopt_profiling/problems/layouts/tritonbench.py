"""tritonbench's layout: an operator that runs the kernels, a subclass of ``BenchmarkOperator`` in the file itself or in
``operator.py`` beside it, with methods that are registered as benchmarks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from accelopt_profiling.problems.discovery.entry import reached
from accelopt_profiling.problems.discovery.search import ProblemFile, ProblemSearch, readable
from accelopt_profiling.problems.layout import SCALE, ProblemLayout
from accelopt_profiling.problems.ref import ProblemLookup, ProblemRef

if TYPE_CHECKING:
    from accelopt_profiling.problems.problem import Problem
    from accelopt_profiling.step_context import StepContext

_BASE = "BenchmarkOperator"
_REGISTERS = "register_benchmark"
OPERATOR_FILE = "operator.py"


@dataclass(frozen=True)
class BenchmarkedOperator:
    """``operator`` is the class, ``methods`` are those of its benchmarks that launch the file's kernels. Their results
    should be that of ``baseline``; "" where there is none that does not launch them itself.
    """

    operator: str
    baseline: str
    methods: list[str]


def benchmarked_operator(tree: ast.Module, kernels: set[str]) -> BenchmarkedOperator | None:
    """Return the first operator of a file with a benchmark that uses one of the names ``kernels``."""
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    for node in classes:
        if not any(ast.unparse(base).split(".")[-1] == _BASE for base in node.bases):
            continue
        reaching = _reaching([*tree.body, *node.body], kernels)
        registered = dict(_registered(node))
        methods = [name for name in registered if name in reaching]
        baseline = next((name for name in reversed(registered) if registered[name]), "")
        others = [name for name in methods if name != baseline]
        if others:
            return BenchmarkedOperator(node.name, baseline, others)
        if methods:
            return BenchmarkedOperator(node.name, "", methods)
    return None


def names_from(tree: ast.Module, stem: str) -> set[str]:
    """Return the names that a file imports from the module ``stem``, or that module by."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[-1] == stem:
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names if alias.name == stem}
    return names


def dotted_name(file: Path) -> tuple[str, Path]:
    """Return the name by which a file is imported as a member of its packages, and the folder above these."""
    names, folder = [file.stem], file.parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        names.append(folder.name)
        folder = folder.parent
    return ".".join(reversed(names)), folder


def _registered(operator: ast.ClassDef) -> Iterator[tuple[str, bool]]:
    """Yield the enabled benchmarks of an operator, and whether each is its baseline."""
    for node in operator.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            if not (isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith(_REGISTERS)):
                continue
            options = {k.arg: k.value.value for k in decorator.keywords if isinstance(k.value, ast.Constant)}
            if options.get("enabled") is not False:
                yield node.name, options.get("baseline") is True


def _reaching(statements: list[ast.stmt], kernels: set[str]) -> set[str]:
    """Return the functions, methods and classes among ``statements`` that use one of ``kernels``, or one that does."""
    used = {
        node.name: {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
        for node in statements
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }
    return reached(used, kernels)


def _find(search: ProblemSearch) -> ProblemLookup | None:
    origin = f"tritonbench operator {search.path.parent.name}"
    if lookup := _read(search, ProblemFile(search.path, origin, source=search.source)):
        return lookup
    beside = search.path.with_name(OPERATOR_FILE)
    others = readable([ProblemFile(beside, origin)] if beside != search.path else [])
    return next((_read(search, file) for file in others), None)


def _read(search: ProblemSearch, file: ProblemFile) -> ProblemLookup | None:
    if file.source is None or file.source.fault:
        return None
    own = file.path == search.path
    kernels = {k.name.split(".")[-1] for k in search.file.kernels}
    operator = benchmarked_operator(
        file.source.tree, kernels if own else names_from(file.source.tree, search.path.stem)
    )
    if operator is None:
        return None
    member, above = dotted_name(file.path)
    options = {**asdict(operator), "member": "" if own else member}
    if not operator.baseline:
        options["unreferenced"] = True
    return search.lookup(
        "tritonbench", None if own else file.path, file.origin, file.source.text, options=options, above=above,
        imports=file.source.imports,
    )  # fmt: skip


def _load(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    from accelopt_profiling.problems.loading.tritonbench import load_tritonbench_problem

    return load_tritonbench_problem(context, ref, kernel_module)


_ABOUT = """\
A subclass of `BenchmarkOperator` in the kernel file, or in `operator.py` beside it that imports from the kernel file.
The methods under `register_benchmark` that launch the file's kernels are run one after another, and their results
compared with the one registered with `baseline=True`. Inputs come from `get_input_iter`: the largest of at most 64 MB
is the main case, others are further cases, and a check that does not fit takes a smaller one. Options of
tritonbench's command line have their defaults. A benchmark that returns nothing is measured and not checked; what one
returns beyond the baseline's outputs is compared with the original's. Without a baseline there is no reference."""

_OPERATOR = """import torch
from tritonbench.utils.triton_op import BenchmarkOperator, register_benchmark

from .k import scale


class Operator(BenchmarkOperator):
    @register_benchmark(baseline=True)
    def torch_scale(self, x):
        return lambda: 2 * x

    @register_benchmark()
    def triton_scale(self, x):
        return lambda: scale(x)

    def get_input_iter(self):
        yield (torch.randn(1024, device=self.device),)
"""

LAYOUT = ProblemLayout(
    "tritonbench", "tritonbench", load=_load, find=_find, read=_read,
    about=_ABOUT, example={"k.py": SCALE, "operator.py": _OPERATOR}, launches=True,
)  # fmt: skip
