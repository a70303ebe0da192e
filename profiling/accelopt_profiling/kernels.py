"""Read a kernel file by its syntax tree: its kernels, and what else it says; nothing is imported."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from accelopt_profiling.language_calls import LanguageCall, version_calls
from accelopt_profiling.measurement import Dialect, Finding
from accelopt_profiling.name_paths import dotted_path, import_paths
from accelopt_profiling.problems.ref import ProblemLookup
from accelopt_profiling.source_text import ParsedPython, by_text, try_parse

#: Decorators that make a function a kernel, and the dialect they make it.
_JIT: dict[str, Dialect] = {
    "triton.jit": "triton",
    "triton.runtime.jit": "triton",
    "triton.runtime.jit.jit": "triton",
    "nki.jit": "nki",
    "neuronxcc.nki.jit": "nki",
    "neuronxcc.nki.compile.jit": "nki",
    "nki.compiler.jit": "nki",
    "neuronxcc.nki.trace": "nki",
    "torch_neuronx.nki_jit": "nki",
    "torch_neuronx.xla_impl.ops.nki_jit": "nki",
    "neuronxcc.nki.baremetal": "nki",
    "neuronxcc.nki.benchmark": "nki",
    "neuronxcc.nki.profile": "nki",
    "neuronxcc.nki.simulate_kernel": "nki",
    "nki.baremetal": "nki",
    "nki.benchmark": "nki",
    "nki.profile": "nki",
}
#: Instructions that only NeuronCore-v4 has.
_MICROSCALING = frozenset({"quantize_mx", "nc_matmul_mx"})
_JIT_NAMES = frozenset(dotted.rpartition(".")[2] for dotted in _JIT)


@dataclass(frozen=True)
class Kernel:
    """A kernel found in source text.

    ``name`` is the qualified name; where two kernels of a file share one, later ones get ``#2``, ``#3``.
    ``line`` is the line of ``def`` and ``first_line`` that of its first decorator, both 1-based.
    ``content_hash`` changes with the kernel's tokens, not with comments, blank lines or its place in the file.
    ``device_function`` tells that another kernel of the file calls it, or that it returns a value, which no kernel of
    Triton may: it is launched by no host code.
    ``made_by`` is the dotted path of the decorator or call that makes it a kernel.
    """

    name: str
    dialect: Dialect
    line: int
    first_line: int
    end_line: int
    content_hash: str
    arguments: tuple[str, ...] = ()
    made_by: str = ""
    device_function: bool = False
    microscaling: bool = False

    @property
    def beta1(self) -> bool:
        """It is written for NKI's Beta 1 (``neuronxcc.nki``) and not for today's ``nki``."""
        return self.made_by.startswith(("neuronxcc.", "torch_neuronx."))


@dataclass(frozen=True)
class KernelSource:
    """The text of a kernel file, perhaps unsaved, and what its syntax says.

    ``text_findings`` say what is wrong with the text, ``version_calls`` are the calls that not every version of NKI or
    Triton has, ``rest_hash`` covers everything that is no kernel, and ``imports`` are those of ``ParsedPython``.
    ``examination.examine`` adds where the file is and the ``problem`` that was looked for with ``project_root`` and the
    setting ``configured``. Plain data: ``to_plain`` and ``from_plain`` carry it between processes, so that a text is
    read once for all who ask about it.
    """

    text: str
    kernels: tuple[Kernel, ...] = ()
    text_findings: tuple[Finding, ...] = ()
    version_calls: tuple[LanguageCall, ...] = ()
    rest_hash: str = ""
    imports: list[tuple[str, int]] = field(default_factory=list)
    path: Path = Path()
    problem: ProblemLookup = field(default_factory=lambda: ProblemLookup(None))
    project_root: Path | None = None
    configured: Mapping[str, str] | str | None = None

    @property
    def launched(self) -> list[Kernel]:
        """The kernels that host code launches."""
        return [k for k in self.kernels if not k.device_function]

    @property
    def findings(self) -> list[Finding]:
        """What is wrong with the text or with its problem."""
        return [*self.text_findings, *self.problem.findings]

    @property
    def syntax_error(self) -> Finding | None:
        """Why the text does not parse; None where it does."""
        return next((f for f in self.text_findings if f.code == "syntax-error"), None)

    @property
    def content_hash(self) -> str:
        """The first 16 hex digits of the text's SHA-256."""
        return hashlib.sha256(self.text.encode(errors="surrogatepass")).hexdigest()[:16]

    @property
    def root(self) -> Path:
        """The folder that the paths of a job for this file are relative to."""
        return (self.problem.root or self.path.parent).resolve()

    @property
    def imports_by_name(self) -> dict[str, list[tuple[str, int]]]:
        """What each file of a job for this file imports, the problem's and its own."""
        return {**self.problem.imports, self.path.resolve().relative_to(self.root).as_posix(): self.imports}

    def kernel(self, name: str) -> Kernel | None:
        """Return the kernel ``name`` that host code launches, or None."""
        return next((k for k in self.launched if k.name == name), None)


@dataclass
class _Scope:
    """``names`` maps local names to dotted paths.

    ``made`` are the functions that a call makes kernels of (``k = triton.jit(k)``, ``nki.baremetal()(k)``), of the
    undecorated ``functions`` of the module.
    """

    names: dict[str, str] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)

    def dotted(self, node: ast.expr) -> str | None:
        """Return the path of an expression; of a call that of what it calls, or of what it is a part of."""
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return f"{base}.{node.attr}" if base else None
        path = dotted_path(node, self.names.get)
        if path is not None or not isinstance(node, ast.Call):
            return path
        if [a.value for a in node.args if isinstance(a, ast.Constant)][:1] == ["triton"]:
            return "triton"  # a package's own way to import it
        target = self.dotted(node.func)
        return self.dotted(node.args[0]) if target == "functools.partial" and node.args else target

    def note_made(self, value: ast.expr) -> None:
        """Take note of the functions that a kernel's decorator is called with somewhere in ``value``."""
        for call in (n for n in ast.walk(value) if isinstance(n, ast.Call)):
            maker = self.dotted(call.func)
            if maker in _JIT:
                self.made.update({a.id: maker for a in call.args[:1] if isinstance(a, ast.Name)})

    def bind_import(self, node: ast.Import | ast.ImportFrom) -> None:
        paths = import_paths(node)
        if module := paths.pop("*", "").removesuffix(".*"):
            made = (dotted.rpartition(".") for dotted in _JIT)
            paths |= {name: f"{module}.{name}" for parent, _, name in made if parent == module}
        self.names |= {name: path for name, path in paths.items() if not path.startswith(".")}


def content_hash(node: ast.AST) -> str:
    """Hash a syntax tree; comments, layout and position do not count."""
    return hashlib.sha256(ast.dump(node, annotate_fields=False).encode()).hexdigest()[:16]


def may_hold_kernels(text: str) -> bool:
    """Test cheaply, without parsing, whether a file can hold a kernel."""
    return ("triton" in text or "nki" in text) and any(name in text for name in _JIT_NAMES)


@by_text
def find_kernels(text: str) -> KernelSource:
    """Read a text as a kernel file's.

    One that does not parse has a finding and no kernel; nothing is raised.
    """
    return kernels_in(try_parse(text))


def kernels_in(parsed: ParsedPython) -> KernelSource:
    """Read a parsed text, as ``find_kernels`` does."""
    if parsed.fault:
        return unread(parsed.text, f"The file does not parse: {parsed.fault}.", parsed.line)
    try:
        return _kernels_of(parsed)
    except RecursionError:
        return unread(parsed.text, "The file does not parse: it is nested more deeply than can be read.")


def unread(text: str, message: str, line: int = 1) -> KernelSource:
    """Return the source of a text of which nothing could be read, with the reason."""
    return KernelSource(text, text_findings=(Finding("syntax-error", line, "error", message),))


def _kernels_of(parsed: ParsedPython) -> KernelSource:
    tree, scope = parsed.tree, _Scope()
    definitions: list[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str, str]] = []
    _collect(tree, scope, "", definitions)
    definitions += [
        (scope.functions[n], n, made_by) for n, made_by in scope.made.items() if n in scope.functions
    ]
    definitions.sort(key=lambda definition: definition[0].lineno)
    counts: dict[str, int] = {}
    kernels: list[Kernel] = []
    findings: list[Finding] = []
    called = _called_inside([node for node, _, _ in definitions])
    microscaling = _reaching_names(tree, _MICROSCALING)
    for node, qualified, maker in definitions:
        counts[qualified] = counts.get(qualified, 0) + 1
        name = qualified if counts[qualified] == 1 else f"{qualified}#{counts[qualified]}"
        if counts[qualified] > 1:
            message = f"Another kernel is called {qualified}; this one, the later, is what the name means at run time."
            findings.append(Finding("duplicate-kernel", node.lineno, "warning", message))
        first = min([d.lineno for d in node.decorator_list], default=node.lineno)
        arguments = tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
        kernels.append(
            Kernel(
                name,
                _JIT[maker],
                line=node.lineno,
                first_line=first,
                end_line=node.end_lineno or node.lineno,
                content_hash=content_hash(node),
                arguments=arguments,
                made_by=maker,
                device_function=node.name in called or (_JIT[maker] == "triton" and _returns_a_value(node)),
                microscaling=node.name in microscaling,
            )
        )
    rest_hash = _rest_hash(tree, {id(n) for n, _, _ in definitions})
    return KernelSource(
        parsed.text,
        tuple(kernels),
        text_findings=tuple(findings),
        version_calls=version_calls(tree),
        rest_hash=rest_hash,
        imports=parsed.imports,
    )


def _collect(
    node: ast.AST,
    scope: _Scope,
    prefix: str,
    definitions: list[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str, str]],
) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Assign, ast.Return, ast.Expr)) and isinstance(child.value, ast.Call):
            scope.note_made(child.value)
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            scope.bind_import(child)
        elif (
            isinstance(child, ast.Assign)
            and len(child.targets) == 1
            and isinstance(child.targets[0], ast.Name)
        ):
            if dotted := scope.dotted(child.value):
                scope.names[child.targets[0].id] = dotted
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            makers = [d for d in map(scope.dotted, child.decorator_list) if d in _JIT]
            qualified = f"{prefix}{child.name}"
            if makers:
                definitions.append((child, qualified, makers[0]))
            elif not prefix and isinstance(child, ast.FunctionDef):
                scope.functions[child.name] = child
            _collect(child, scope, f"{qualified}.", definitions)
            continue
        if isinstance(child, ast.ClassDef):
            _collect(child, scope, f"{prefix}{child.name}.", definitions)
        elif isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            _collect(child, scope, prefix, definitions)


def _called_inside(kernels: list[ast.FunctionDef | ast.AsyncFunctionDef]) -> set[str]:
    """Return the names called or passed on inside kernels: those kernels are device functions."""
    calls = (n for kernel in kernels for n in ast.walk(kernel) if isinstance(n, ast.Call))
    parts = (part for c in calls for part in (c.func, *c.args, *(k.value for k in c.keywords)))
    return {part.id for part in parts if isinstance(part, ast.Name)}


def _returns_a_value(kernel: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a ``return`` of the function itself has a value other than None."""
    waiting: list[ast.AST] = list(kernel.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            if not (isinstance(node.value, ast.Constant) and node.value.value is None):
                return True
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
    return False


def _reaching_names(tree: ast.Module, targets: frozenset[str]) -> set[str]:
    """Return the functions of a file that name one of ``targets``, or another function of the file that does."""
    uses = {
        n.name: {
            m.attr if isinstance(m, ast.Attribute) else m.id
            for m in ast.walk(n)
            if isinstance(m, (ast.Attribute, ast.Name))
        }
        for n in ast.walk(tree)
        if isinstance(n, ast.FunctionDef)
    }
    reached = {name for name, names in uses.items() if names & targets}
    while reached and (more := {name for name, names in uses.items() if names & reached} - reached):
        reached |= more
    return reached


def _rest_hash(tree: ast.Module, kernels: set[int]) -> str:
    digest = hashlib.sha256()
    for statement in tree.body:
        if id(statement) not in kernels:
            digest.update(ast.dump(statement, annotate_fields=False).encode())
    return digest.hexdigest()[:16]
