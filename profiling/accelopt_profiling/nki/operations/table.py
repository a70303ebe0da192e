"""Reads ``operations.json``: one row for each function of NKI, in both dialects.

Everything that needs to know a function asks here: the emulator's modules, versions, rewrite rules, migration, the time
model, what models are told, the reference.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, get_args

NkiDialect = Literal["beta1", "current"]
DIALECTS: tuple[NkiDialect, ...] = get_args(NkiDialect)


class NoDefault:
    """The default of a parameter that a call must give."""


@dataclass(frozen=True)
class Choice:
    """A default by its name: a member of one of ``nisa``'s enumerations ("reduce_cmd.idle")."""

    kind: str
    member: str


@dataclass(frozen=True)
class Parameter:
    """A parameter. ``keyword_only``: given by name alone; ``ignored``: taken and without effect in the emulator;
    ``documented``: on a page of AWS."""

    name: str
    default: Any = NoDefault
    keyword_only: bool = False
    ignored: bool = False
    documented: bool = True

    @property
    def required(self) -> bool:
        return self.default is NoDefault

    def __str__(self) -> str:
        default = self.default
        if isinstance(default, Choice):
            return f"{self.name}={default.kind}.{default.member}"
        if self.required:
            return self.name
        return f"{self.name}={default if isinstance(default, str) and default else repr(default)}"


@dataclass(frozen=True)
class Signature:
    """The parameters of a function in one dialect; ``variadic``: any number of them, without names."""

    parameters: tuple[Parameter, ...]
    variadic: str = ""

    @property
    def positional(self) -> tuple[str, ...]:
        """Names of the documented parameters that a call may give by position."""
        return tuple(p.name for p in self.parameters if not p.keyword_only and p.documented)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(p.name for p in self.parameters)

    def __str__(self) -> str:
        """Return what is documented, as Python writes it: "(data, *, mask=None)"."""
        parts = [f"*{self.variadic}"] if self.variadic else []
        for parameter in self.parameters:
            if parameter.documented:
                if parameter.keyword_only and "*" not in parts:
                    parts.append("*")
                parts.append(str(parameter))
        return f"({', '.join(parts)})"


@dataclass(frozen=True)
class Operation:
    """A function of NKI, or another name of it.

    ``kind`` is what it is for ("elementwise", "transfer", ...).
    ``computes`` is the emulator's function by dialect. ``engines`` are those that the compiler chooses from, ``also``
    those that a kernel may ask for. ``shape`` relates the result to the operands ("same", "pair", "reduced",
    "transposed", "product"). ``reads`` and ``writes`` name parameters that hold tiles; with ``keeps`` the destination
    keeps some of what it held, or adds to it. ``limits`` are numbers that the documentation states, ``generation`` the
    first core that has it. Functions of one ``family`` ("unary") have one signature; in the dialects ``tokens`` a name
    is only the ``op`` of an instruction. ``demands`` are the page's rules over parameters, ``indirect``
    those that take columns by index on trn3, ``impossible`` why today's hardware does not have what the page names.
    ``changes`` tells the versions of today's dialect that "added", "deprecated" or "removed" it and what to write
    "instead".
    """

    name: str
    about: str = ""
    kind: str = ""
    signatures: Mapping[NkiDialect, Signature] = field(default_factory=dict)
    computes: Mapping[NkiDialect, str] = field(default_factory=dict)
    engines: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    opcode: str = ""
    shape: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    keeps: bool = False
    generation: int = 0
    limits: Mapping[str, int] = field(default_factory=dict)
    demands: tuple[tuple[tuple[str, ...], str], ...] = ()
    indirect: tuple[str, ...] = ()
    impossible: str = ""
    changes: Mapping[str, str] = field(default_factory=dict)
    example: str = ""
    family: str = ""
    tokens: tuple[NkiDialect, ...] = ()

    @property
    def in_one_form(self) -> bool:
        """True if one function computes it in both dialects."""
        return len(self.computes) == len(DIALECTS) and len(set(self.computes.values())) == 1

    def returns_all(self, dialect: NkiDialect) -> bool:
        """Return whether a call of a dialect needs to name no tile that it writes."""
        signature = self.signatures.get(dialect)
        return signature is not None and not any(
            p.required and p.name in self.writes for p in signature.parameters
        )

    @property
    def short(self) -> str:
        """The name in its module: "activation"."""
        return self.name.rpartition(".")[2]


@cache
def table() -> dict[str, Any]:
    """Return the file, by its keys: "versions", "pages", "values", "functions", "names", "methods" and others."""
    from importlib import resources  # which a server's start has no time for

    text = resources.files(__package__).joinpath("operations.json").read_text("utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


@dataclass(frozen=True)
class OpcodeCost:
    """What an instruction costs beside others on the same engine.

    ``vector`` names its cycles for an element on VectorE ("one", "pair": by how many operands lie in PSUM, "two",
    "reciprocal", "quotient", "triples", "fill", "blocks" of a transpose); ``gpsimd`` are GpSimdE's cycles for one,
    ``scalar`` what ScalarE adds to an instruction. ``narrow`` says how VectorE gains where all elements have two bytes.
    ``avoidable``: it moves or makes values, or another instruction does what it does on its way.
    """

    vector: str = "one"
    gpsimd: int = 1
    scalar: int = 0
    narrow: str = ""
    avoidable: bool = False


@cache
def opcode_cost(opcode: str) -> OpcodeCost:
    """Return what instructions of an opcode cost."""
    return OpcodeCost(**table()["opcodes"].get(opcode, {}))


@cache
def operations() -> Mapping[str, Operation]:
    """Return each function by its name, "nl.load" or "nisa.activation"."""
    return {name: _operation(name, row) for name, row in table()["functions"].items()}


def names(*kinds: str) -> frozenset[str]:
    """Return the functions of some ``kinds``."""
    return frozenset(o.name for o in operations().values() if o.kind in kinds)


def full_name(name: str) -> str:
    """Return "nki.isa.activate2" for "nisa.activate2"; other names as they are."""
    module, _, short = name.partition(".")
    package = table()["packages"]["current"].get(module)
    return f"{package}.{short}" if package else name


def _operation(name: str, row: dict[str, Any]) -> Operation:
    short = name.rpartition(".")[2]
    row = {**table()["families"].get(row.get("like"), {}), **row}
    dialects = [d for d in DIALECTS if d in row and row.get("only", d) == d and row.get("token") != d]
    computes = row.get("computes", {})
    words = {
        key: tuple(row.get(key, "").split()) for key in ("engines", "also", "reads", "writes", "indirect")
    }
    return Operation(
        name,
        kind=row["kind"],
        about=row["about"],
        signatures={d: _signature(f"{row[d]} {table()['everywhere'][d]}") for d in dialects},
        computes=dict.fromkeys(dialects, computes) if isinstance(computes, str) else computes,
        opcode=row.get("opcode", ""),
        shape=row.get("shape", ""),
        keeps=row.get("keeps", False),
        generation=row.get("generation", 0),
        limits=row.get("limits", {}),
        demands=tuple(_demand(text) for text in row.get("demands", ())),
        impossible=row.get("impossible", ""),
        changes={key: row[key] for key in CHANGES if key in row},
        example=row.get("example", "").replace("{name}", short),
        family=row.get("like", ""),
        tokens=(row["token"],) if "token" in row else (),
        **words,
    )


def _demand(text: str) -> tuple[tuple[str, ...], str]:
    names, _, rule = text.partition(": ")
    return tuple(names.split()), rule


#: What a row says of versions.
CHANGES = ("added", "deprecated", "removed", "unless", "instead")


def _signature(text: str) -> Signature:
    parameters: dict[str, Parameter] = {}
    keyword_only, variadic = False, ""
    for word in text.split():
        if word == "*":
            keyword_only = True
        elif word.startswith("*"):
            variadic = word[1:]
        else:
            name, _, default = word.lstrip("+~").partition("=")
            marks = word[: len(word) - len(word.lstrip("+~"))]
            ignored, documented = "~" in marks, "+" not in marks
            parameters.setdefault(name, Parameter(name, _default(default), keyword_only, ignored, documented))
    return Signature(tuple(parameters.values()), variadic)


def _default(text: str) -> Any:
    """Return a default: a literal, a ``Choice``, or a word for what the emulator takes by name ("float32", "max")."""
    if not text:
        return NoDefault
    try:
        return ast.literal_eval(text)
    except ValueError:
        kind, dot, member = text.partition(".")
        return Choice(kind, member) if dot else text
