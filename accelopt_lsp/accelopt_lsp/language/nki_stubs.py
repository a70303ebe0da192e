"""Write type stubs of ``nki`` and ``neuronxcc.nki`` from the table of operations.

Operands are ``Any``: NKI takes tensors, registers, NumPy's numbers and Python's in most places, and a stub that allows
less marks right code as wrong. What a name is, its parameters and what it returns are typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from accelopt_lsp.language.nki_names import (
    absence,
    buffers,
    choices,
    data_types,
    engines,
    other_names,
    tile_sizes,
)
from accelopt_lsp.language.operation_text import data_type, facts, page
from accelopt_profiling.nki.current.versions import change
from accelopt_profiling.nki.operations.table import (
    Choice,
    NkiDialect,
    Operation,
    Parameter,
    full_name,
    operations,
    table,
)

#: Kinds of functions whose result is a tensor, where it is not written to a ``dst``.
_TENSORS = frozenset((
    "accumulation", "allocation", "broadcast", "cast", "composite", "copy", "elementwise", "fill", "gather",
    "microscaling", "product", "random", "reduction", "search", "select", "shuffle", "statistics", "transfer",
    "transpose", "view",
))  # fmt: skip
#: What other functions of ``nl`` return, by name.
_RETURNS = {
    "affine_range": "range", "sequential_range": "range", "static_range": "range", "program_id": "int",
    "program_ndim": "int", "arange": "tensor", "store": "None", "device_print": "None", "get_nc_version": "nc_version",
    "get_nc_sub_version": "int", "finfo": "Any", "static_cast": "Any", "load_transpose2d": "tensor",
    "par_dim": "int", "nc": "int",
}  # fmt: skip
#: What each stub says of itself.
MARK = "Written by ``accelopt stubs``"
_HEAD = f'"""{MARK} from its table of operations: {{about}}."""\n\n'
_OPEN = "def __getattr__(name: str) -> Any: ...  # pyright: ignore[reportIncompleteStub]\n"
_KERNEL = '''
class Kernel:
    """A kernel: ``kernel(x)`` launches one program, ``kernel[n](x)`` a grid of them."""

    __name__: str
    __doc__: str | None
    benchmark_result: Any
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __getitem__(self, grid: Any) -> Kernel: ...

'''
#: Names that are written in a place of their own.
_WRITTEN = frozenset(("fp32", "tile_size", "constants", "tensor"))
#: How a name is written that is no plain value.
_CLASSES = {
    "NkiTensor": "NkiTensor = tensor",
    "range": "range = builtins.range",
    "NKIObject": '''
class NKIObject:
    """The base of configuration classes of kernels."""

    def __init__(self, *values: Any, **fields: Any) -> None: ...
''',
    "NkiInstruction": '''
class NkiInstruction:
    """What an instruction gives back: others may be told to run after it."""

    def depends_on(self, *producers: NkiInstruction) -> NkiInstruction: ...
''',
    "NkiValidationError": "class NkiValidationError(Exception): ...",
    **{
        name: f"class {name}(tensor): ..."
        for name in ("NkiGrid", "NkiTileGrid", "NkiBlockGrid", "VirtualRegister", "NkiScalar")
    },
}
_GROUP = '''
class ReplicaGroup:
    """Groups of ranks that take part in a collective."""

    def __init__(self, groups: Any) -> None: ...
'''
_MAKER = "def {}(function: Any = None, **options: Any) -> Kernel: ..."


def stubs(version: str) -> Mapping[str, str]:
    """Return the text of each stub by its path: both packages, ``nki`` as its ``version`` is."""
    today, beta1 = f"NKI {version}", "NKI Beta 1, of neuronx-cc 2.26"
    parts = "from . import isa as isa, language as language, typing as typing\n"
    return {
        "nki/__init__.pyi": _package(
            today, f"from . import collectives as collectives\n{parts}\n__version__: str\n", "jit trace"
        )
        + "def simulate(kernel: Any) -> Any: ...\n",
        "nki/language.pyi": _language("current", version, today),
        "nki/isa/__init__.pyi": _instructions("current", version, today),
        "nki/isa/constants.pyi": _choice_names("current", today),
        "nki/typing.pyi": _typing("current", version, today),
        "nki/collectives.pyi": _module(
            today, "import builtins\n", [_GROUP, *_functions("nki.collectives", "current", version)]
        ) + _OPEN,
        "neuronxcc/__init__.pyi": _open(beta1),
        "neuronxcc/nki/__init__.pyi": _package(
            beta1, f"from . import compiler as compiler\n{parts}from .typing import tensor as tensor\n",
            "jit trace baremetal benchmark profile",
        ) + "def simulate_kernel(kernel: Any, *args: Any, **kwargs: Any) -> Any: ...\n",
        "neuronxcc/nki/language/__init__.pyi": _language("beta1", version, beta1),
        "neuronxcc/nki/language/constants.pyi": _HEAD.format(about=beta1)
        + "from typing import Any\n\ndef sizeinbytes(dtype: Any) -> int: ...\n",
        "neuronxcc/nki/isa/__init__.pyi": _instructions("beta1", version, beta1),
        "neuronxcc/nki/isa/constants.pyi": _choice_names("beta1", beta1),
        "neuronxcc/nki/typing.pyi": _typing("beta1", version, beta1),
        "neuronxcc/nki/compiler.pyi": _open(beta1),
    }  # fmt: skip


def _package(about: str, parts: str, makers: str) -> str:
    """The package's own names: its modules, and what makes a function a kernel."""
    head = _HEAD.format(about=about) + "from typing import Any\n\n"
    return head + parts + _KERNEL + "".join(f"{_MAKER.format(name)}\n" for name in makers.split())


def _open(about: str) -> str:
    """A module whose names are not in the table: anything can be asked of it."""
    return _HEAD.format(about=about) + f"from typing import Any\n\n{_OPEN}"


def _module(about: str, imports: str, lines: Sequence[str]) -> str:
    """A module with functions; what they need is imported."""
    text = "\n".join(lines)
    marks = "from typing_extensions import deprecated\n\n" if "@deprecated(" in text else ""
    return f"{_HEAD.format(about=about)}{imports}from typing import Any\n\n{marks}{text}\n"


def _others(module: str, dialect: NkiDialect, version: str) -> list[str]:
    return [n for n in other_names(module, dialect, version) if n not in _WRITTEN]


def _typing(dialect: NkiDialect, version: str, about: str) -> str:
    from importlib.resources import files  # which a server's start has no time for

    text = files(__package__).joinpath("stub_parts/tensor.pyi").read_text("utf-8")
    common, views = text.split("    # Today's dialect\n")
    if dialect == "current":
        parts = re.split(r"(?m)^(?=    (?:@|def ))", views)
        later = {
            method for method in table()["methods"] if (c := change("methods", method, version)) and c.kind == "added"
        }  # fmt: skip
        common += "".join(p for p in parts if not ((name := re.search(r"def (\w+)", p)) and name[1] in later))
    return _HEAD.format(about=about) + common + "\nmutable_tensor = tensor[mutable]\nscalar = Any\n"


def _language(dialect: NkiDialect, version: str, about: str) -> str:
    package = table()["packages"][dialect]["nl"].rpartition(".")[0]
    lines = [f"from {package}.typing import tensor as tensor\n"]
    if dialect == "beta1":
        lines += ["from . import constants as constants\n"]
    lines += [f"{name}: Any" for name in (*data_types(dialect, version), *buffers())]
    lines += ["\nclass fp32:\n    min: float\n    max: float\n", "class _TileSize:"]
    lines += [f"    {name}: int" for name in tile_sizes(dialect)]
    lines += ["\ntile_size: _TileSize\n"]
    lines += [_CLASSES.get(name, f"{name}: Any") for name in _others("nl", dialect, version)]
    return _module(about, "import builtins\n", [*lines, *_functions("nl", dialect, version)])


def _instructions(dialect: NkiDialect, version: str, about: str) -> str:
    package = table()["packages"][dialect]["nisa"].rpartition(".")[0]
    lines = [
        f"from {package}.isa import constants as constants\nfrom {package}.typing import tensor as tensor\n"
    ]
    for name, members in choices(dialect).items():
        values = "\n".join(f"    {member} = {i}" for i, member in enumerate(members))
        order = "".join(
            f"    def __{c}__(self, other: {name}) -> bool: ...\n" for c in ("lt", "le", "gt", "ge")
        )
        lines.append(f"class {name}(Enum):\n{values}\n{order if name == 'nc_version' else ''}")
    lines += [f"{name}: engine" for name in engines(dialect)]
    lines += [_CLASSES.get(name, f"{name}: Any") for name in _others("nisa", dialect, version)]
    functions = _functions("nisa", dialect, version)
    return _module(about, "import builtins\nfrom enum import Enum\n", [*lines, "", *functions])


def _choice_names(dialect: NkiDialect, about: str) -> str:
    package = table()["packages"][dialect]["nisa"]
    names = "".join(f"from {package} import {name} as {name}\n" for name in choices(dialect))
    return _HEAD.format(about=about) + names


def _functions(module: str, dialect: NkiDialect, version: str) -> Iterator[str]:
    for operation in operations().values():
        if not operation.name.startswith(f"{module}.") or absence(operation.name, dialect, version):
            continue
        if dialect in operation.tokens:
            yield f'{operation.short}: Any\n"""{operation.about}: an ``op`` of instructions."""\n'
        elif dialect in operation.signatures:
            yield _function(operation, dialect, version)


def _function(operation: Operation, dialect: NkiDialect, version: str) -> str:
    signature = operation.signatures[dialect]
    parts = [f"*{signature.variadic}: Any"] if signature.variadic else []
    for parameter in signature.parameters:
        if parameter.keyword_only and not any(part.startswith("*") for part in parts):
            parts.append("*")
        parts.append(_parameter(parameter))
    if signature.variadic and operation.kind == "range":
        parts.append("**hints: Any")  # to the compiler
    mark = ""
    reason = change("names", full_name(operation.name), version) if dialect == "current" else None
    if reason is not None and reason.kind == "deprecated":
        mark = f'@deprecated("since NKI {reason.version}; use {reason.instead}")\n'
    head = f"{mark}def {operation.short}({', '.join(parts)}) -> {_result(operation, dialect)}:"
    texts = {**facts(operation), "type": data_type(operation, dialect)}
    listed = "".join(f"    - {name}: {text}\n" for name, text in texts.items() if text)
    between = "\n" if listed else ""
    return f'{head}\n    """{operation.about}.\n\n{listed}{between}    {page(operation, dialect)}\n    """\n'


def _parameter(parameter: Parameter) -> str:
    """Write a parameter; ``bool`` alone would be the data type ``nl.bool``."""
    default = parameter.default
    if isinstance(default, Choice):
        return f"{parameter.name}: {default.kind} | None = {default.kind}.{default.member}"
    if parameter.required:
        return f"{parameter.name}: Any"
    kind = "builtins.bool" if isinstance(default, bool) else "Any"
    literal = "..." if isinstance(default, str) and default else repr(default)
    return f"{parameter.name}: {kind} = {literal}"


def _result(operation: Operation, dialect: NkiDialect) -> str:
    signature = operation.signatures[dialect]
    if operation.name.startswith("nisa.") and "dst" in signature.names and dialect == "current":
        return "None"
    if operation.short in _RETURNS:
        return _RETURNS[operation.short]
    if operation.short.startswith("is_"):
        return "builtins.bool"
    return "tensor" if operation.kind in _TENSORS else "Any"
