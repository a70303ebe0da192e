"""What a dotted path of NKI or Triton means: a function with its parameters, a module's names, the values of a
parameter."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from accelopt_lsp.language.nki_names import (
    absence,
    buffers,
    choices,
    data_types,
    newest,
    tile_sizes,
    value_names,
)
from accelopt_lsp.language.operation_text import data_type, facts, page
from accelopt_profiling.nki.operations.table import (
    DIALECTS,
    Choice,
    NkiDialect,
    Operation,
    operations,
    table,
)
from accelopt_profiling.triton.functions.table import TritonFunction, Version, functions, version_text
from accelopt_profiling.triton.functions.table import table as triton_table
from accelopt_profiling.triton_adapter.versions import NEWEST, OLDEST

TRITON = "triton.language"


@dataclass(frozen=True)
class LanguageVersions:
    """The versions that names are looked up in: of today's NKI, and of Triton, None where none is installed.

    ``typed`` are the packages ("nki", "neuronxcc", "triton") that a type checker finds here, so that it completes their
    names itself.
    """

    nki: str = field(default_factory=newest)
    triton: Version | None = None
    typed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Argument:
    """A parameter as it is written: "bias=None", "*args". ``positional`` tells that it may be given by position."""

    name: str
    text: str
    positional: bool = True


@dataclass(frozen=True)
class Function:
    """A function: ``name`` as kernels write it ("nisa.activation"); ``facts`` are known beside the parameters."""

    name: str
    arguments: tuple[Argument, ...]
    about: str
    facts: Mapping[str, str]
    example: str = ""
    page: str = ""

    @property
    def signature(self) -> str:
        return f"{self.name}({', '.join(argument.text for argument in _with_star(self.arguments))})"


def _with_star(arguments: tuple[Argument, ...]) -> Iterator[Argument]:
    """Yield the parameters as Python writes them: a ``*`` before the first that is given by name alone."""
    starred = False
    for argument in arguments:
        if not argument.positional and not starred and not argument.text.startswith("**"):
            yield Argument("*", "*", False)
        starred = starred or not argument.positional or argument.text.startswith("*")
        yield argument


@dataclass(frozen=True)
class Member:
    """A name of a module; ``about`` is its signature, or what it is."""

    name: str
    kind: Literal["function", "value", "member", "module"]
    about: str = ""
    deprecated: bool = False


def nki_name(path: str) -> tuple[NkiDialect, str, str] | None:
    """Return dialect, module and the rest of "nki.language.exp": ("current", "nl", "exp")."""
    for dialect in DIALECTS:
        for module, package in table()["packages"][dialect].items():
            if path == package or path.startswith(f"{package}."):
                return dialect, module, path[len(package) + 1 :]
    return None


def function_at(path: str, versions: LanguageVersions) -> Function | None:
    """Return the function that a dotted path means; of Triton as the installed version has it, else the newest that
    does."""
    if (place := nki_name(path)) is not None:
        dialect, module, name = place
        operation = operations().get(f"{module}.{name}")
        return None if operation is None or dialect not in operation.signatures else _nki(operation, dialect)
    triton = functions().get(path.removeprefix(f"{TRITON}.")) if path.startswith(f"{TRITON}.") else None
    return _triton(triton, versions.triton or NEWEST) if triton is not None else None


def _nki(operation: Operation, dialect: NkiDialect) -> Function:
    signature = operation.signatures[dialect]
    variadic = [Argument(signature.variadic, f"*{signature.variadic}", False)] if signature.variadic else []
    named = [Argument(p.name, str(p), not p.keyword_only) for p in signature.parameters if p.documented]
    details = dict(facts(operation))
    example = details.pop("example", "")
    if dialect == "beta1":  # the example is written in today's dialect where they differ
        example = example if "nisa." not in example else ""
        details.pop("versions", None)
    if kind := data_type(operation, dialect):
        details["type"] = kind
    name = {"beta1": "NKI Beta 1", "current": "today's NKI"}[dialect]
    about = f"{operation.about}."
    return Function(
        operation.name,
        (*variadic, *named),
        about,
        {"dialect": name, **details},
        example,
        page(operation, dialect),
    )


def _triton(function: TritonFunction, version: Version) -> Function:
    parameters = function.parameters(version)
    if parameters is None:
        parameters = next(text for _, text in reversed(function.versions) if text is not None)
    first, last = function.versions[0][0], function.versions[-1]
    details = {}
    if first > OLDEST:
        details["since"] = f"Triton {version_text(first)}"
    if last[1] is None:
        details["gone since"] = f"Triton {version_text(last[0])}"
    changed = [version_text(v) for v, text in function.versions[1:] if text is not None]
    if changed:
        details["parameters changed in"] = ", ".join(f"Triton {v}" for v in changed)
    about = f"{triton_table()['about_kinds'][function.kind]}."
    name = f"tl.{function.name}"
    return Function(
        name,
        _arguments(parameters),
        about,
        details,
        page=f"{triton_table()['pages']}{function.name}.html",
    )


@lru_cache(maxsize=512)
def _arguments(text: str) -> tuple[Argument, ...]:
    """Return the parameters that Python reads in "pointer, mask=None, *, volatile=False"."""
    function = ast.parse(f"def f({text}): ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    missing = [None] * (len(plain) - len(arguments.defaults))
    parsed = [_argument(a, d, True) for a, d in zip(plain, [*missing, *arguments.defaults], strict=True)]
    if arguments.vararg:
        parsed.append(Argument(arguments.vararg.arg, f"*{arguments.vararg.arg}", False))
    parsed += [
        _argument(a, d, False) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    if arguments.kwarg:
        parsed.append(Argument(arguments.kwarg.arg, f"**{arguments.kwarg.arg}", False))
    return tuple(parsed)


def _argument(argument: ast.arg, default: ast.expr | None, positional: bool) -> Argument:
    text = argument.arg if default is None else f"{argument.arg}={ast.unparse(default)}"
    return Argument(argument.arg, text, positional)


def members(path: str, versions: LanguageVersions) -> Iterator[Member]:
    """Yield the names in a module, an enumeration or ``nl.tile_size``, as the version has them; none of others."""
    if path == TRITON:
        yield from _triton_members(versions)
    elif path in ("nki", "neuronxcc.nki"):
        yield from (Member(name, "module") for name in ("language", "isa", "typing"))
    elif (place := nki_name(path)) is not None:
        dialect, module, rest = place
        if rest:
            of = choices(dialect) if module == "nisa" else {"tile_size": tile_sizes(dialect)}
            yield from (Member(name, "member") for name in of.get(rest, ()))
            return
        for operation in operations().values():
            if operation.name.startswith(f"{module}.") and not absence(operation.name, dialect, versions.nki):
                if dialect in operation.signatures:
                    signature = operation.signatures[dialect]
                    deprecated = dialect == "current" and "deprecated" in operation.changes
                    yield Member(operation.short, "function", str(signature), deprecated)
                elif dialect in operation.tokens:
                    yield Member(operation.short, "value", "an op of instructions")
        yield from (Member(name, "value") for name in value_names(module, dialect, versions.nki))


def _triton_members(versions: LanguageVersions) -> Iterator[Member]:
    version = versions.triton or NEWEST
    for function in functions().values():
        parameters = function.parameters(version)
        if parameters is not None and not function.name.startswith("_"):
            yield Member(function.name, "function", f"({parameters})")
    yield from (Member(name, "value", "a data type") for name in triton_table()["dtypes"].split())
    yield from (Member(name, "value") for name in triton_table()["other_names"].split())


def values(path: str, parameter: str, spell: Callable[[str], str]) -> list[str]:
    """Return what a parameter of a function takes, as text; ``spell`` writes a dotted path by the file's imports."""
    if (place := nki_name(path)) is not None:
        return _nki_values(*place, parameter=parameter, spell=spell)
    function = functions().get(path.removeprefix(f"{TRITON}.")) if path.startswith(f"{TRITON}.") else None
    if function is None:
        return []
    if parameter in ("dtype", "out_dtype"):
        return [spell(f"{TRITON}.{name}") for name in triton_table()["dtypes"].split()]
    of = triton_table()["values"]
    text = of.get(function.kind, {}).get(parameter) or of[""].get(parameter, "")
    return [spell(TRITON + word[2:]) if word.startswith("tl.") else word for word in text.split()]


def _nki_values(
    dialect: NkiDialect, module: str, name: str, parameter: str, spell: Callable[[str], str]
) -> list[str]:
    operation = operations().get(f"{module}.{name}")
    signature = operation.signatures.get(dialect) if operation else None
    of = next((p for p in signature.parameters if p.name == parameter), None) if signature else None
    if operation is None or of is None:
        return []
    default, package = of.default, table()["packages"][dialect]
    if parameter == "dtype":
        return [spell(f"{package['nl']}.{kind}") for kind in data_types(dialect, newest())]
    if parameter == "buffer":
        return [spell(f"{package['nl']}.{kind}") for kind in buffers()]
    if isinstance(default, Choice):
        return [
            spell(f"{package['nisa']}.{default.kind}.{m}") for m in choices(dialect).get(default.kind, ())
        ]
    if parameter == "engine":
        return [spell(f"{package['nisa']}.engine.{member}") for member in choices(dialect)["engine"]]
    if isinstance(default, bool):
        return ["True", "False"]
    if module == "nisa" and parameter in _OPERATORS:
        unary = parameter == "op" and operation.opcode.startswith("activation")
        family = "unary" if unary else "binary"
        names = [o.short for o in operations().values() if o.family == family and dialect in o.signatures]
        return [spell(f"{package['nl']}.{short}") for short in names]
    return []


#: Parameters that take a function of ``nl`` as the operation to apply.
_OPERATORS = frozenset(("op", "op0", "op1", "reduce_op", "cmp_op", "operator"))
