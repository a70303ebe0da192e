"""The adapter to Triton: nobody else imports what is not public, and what it stands on is there.

When a new Triton moves something, this says what, before anything else; the tests run under any version that works.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
import triton.testing
from support import triton_kernels as kernels

from accelopt_profiling.targets import load_gpu
from accelopt_profiling.triton_adapter import compiler, interpreter, runtime
from accelopt_profiling.triton_adapter.versions import NEWEST, OLDEST, REQUIREMENT, minor_version, unsupported

pytestmark = pytest.mark.triton

ROOT = Path(__file__).parents[3]
ADAPTER = ROOT / "profiling/accelopt_profiling/triton_adapter"
PRODUCT = [
    path
    for room in (
        "profiling",
        "memory_db",
        "agent",
        "nkibench",
        "accelopt_lsp",
        "benchmarks/accelopt_benchmarks",
    )
    for path in sorted((ROOT / room).rglob("*.py"))
    if ADAPTER not in path.parents
]
PUBLIC_MODULES = {"triton", "triton.language", "triton.testing", "triton.language.extra"}
#: Attributes of ``triton`` and ``triton.language`` that anybody may use, besides what they list themselves.
PUBLIC = {
    "triton": {*triton.__all__, "__version__", "__file__"} - {"runtime", "tools"},
    "triton.language": {*tl.__all__, "extra"},
    "triton.testing": {name for name in vars(triton.testing) if not name.startswith("_")},
}


def private_names(text: str) -> Iterator[str]:
    """Yield the modules and attributes of Triton in a module's text that are not public API."""
    tree = ast.parse(text)
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "triton":
                    aliases[alias.asname or "triton"] = alias.name if alias.asname else "triton"
                    if alias.name not in PUBLIC_MODULES:
                        yield alias.name
        elif (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").split(".")[0] == "triton"
            and not node.level
        ):
            for alias in node.names:
                if node.module not in PUBLIC_MODULES or alias.name not in PUBLIC.get(
                    node.module, {alias.name}
                ):
                    yield f"{node.module}.{alias.name}"
                aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and str(argument.value).startswith("triton."):
                    yield str(argument.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            first, _, rest = owner.partition(".")
            if first in aliases:
                owner = f"{aliases[first]}.{rest}".rstrip(".")
                if node.attr not in PUBLIC.get(owner, {node.attr}):
                    yield f"{owner}.{node.attr}"


@pytest.mark.parametrize("path", PRODUCT, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_adapter_imports_what_is_not_public(path: Path) -> None:
    text = path.read_text()
    names = set(private_names(text)) if "triton" in text else set()
    assert not names, f"take {', '.join(names)} from accelopt_profiling.triton_adapter"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("from triton.runtime.jit import mangle_type", "triton.runtime.jit.mangle_type"),
        ("import triton.compiler", "triton.compiler"),
        ("from triton import knobs", "triton.knobs"),
        ("def f():\n    import triton\n    triton.runtime.driver.active", "triton.runtime"),
        ("import triton as t\nt._C.libtriton", "triton._C"),
        ("import triton.language as tl\ntl.core.reduce", "triton.language.core"),
        ("from triton.language import semantic", "triton.language.semantic"),
        ("import importlib\nimportlib.import_module('triton.backends')", "triton.backends"),
    ],
)
def test_that_check_sees_each_way_to_import(text: str, name: str) -> None:
    assert name in set(private_names(text))


def test_no_file_of_the_adapter_is_long() -> None:
    assert {path.name: n for path in ADAPTER.glob("*.py") if (n := path.read_text().count("\n")) > 400} == {}


def test_the_range_is_the_one_that_is_installed() -> None:
    assert f'"{REQUIREMENT}"' in (ROOT / "pyproject.toml").read_text()
    assert OLDEST <= minor_version(triton.__version__) <= NEWEST, "try the new Triton, then widen the range"


@pytest.mark.parametrize(
    ("version", "works"),
    [("3.3.0", True), ("3.3.1+git1", True), ("3.9.9", True), ("3.2.0", False), ("3.10.0", False), ("2.3.1", False),
     ("4.0.0", False), ("unknown", False)],
)  # fmt: skip
def test_one_sentence_for_a_version_outside(version: str, works: bool) -> None:
    sentence = unsupported(version, "/my/python")
    assert (sentence == "") == works
    assert works or sentence == (
        f"Triton {version} is installed, and AccelOpt works with Triton 3.3 to 3.9: run `/my/python -m pip install "
        "'triton>=3.3,<3.10'`."
    )


BUILDER = {
    "create_masked_load": ["self", "ptrs", "mask", "other"],
    "create_masked_store": ["self", "ptrs", "value", "mask"],
    "create_atomic_rmw": ["self", "rmwOp", "ptr", "val", "mask", "sem", "scope"],
    "create_atomic_cas": ["self", "ptr", "cmp", "val", "sem", "scope"],
    "create_dot": ["self", "a", "b", "d", "input_precision", "max_num_imprecise_acc"],
    "create_fp_to_fp": ["self", "src", "dst_type", "rounding_mode"],
    "cast_impl": ["self", "src", "dst_type"],
    "binary_op": ["self", "lhs", "rhs", "op"],
    "unary_op": ["self", "arg", "op"],
    "create_extern_elementwise": ["self", "libName", "libPath", "symbol", "argList", "retType", "isPure"],
}


@pytest.mark.parametrize("name", BUILDER)
def test_builder_operation_takes_what_it_took(name: str) -> None:
    parameters = list(inspect.signature(getattr(interpreter.InterpreterBuilder, name)).parameters)
    assert parameters[: len(BUILDER[name])] == BUILDER[name]


def test_a_kernel_is_compiled_through_the_name_that_is_replaced() -> None:
    source = inspect.getsource(runtime.JITFunction.create_binder)
    assert "from ..compiler import" in source
    assert "compile" in source


def test_the_place_of_a_definition_is_that_of_its_def_line() -> None:
    file, line = runtime.defined_at(kernels.add)
    assert file == kernels.__file__
    assert Path(file).read_text().splitlines()[line - 1].startswith("def add(")


def test_a_driver_is_active_inside_of_the_block_alone() -> None:
    one, another = object(), object()
    with runtime.active_driver(one):
        assert runtime.current_driver() is one
        with runtime.active_driver(another):
            assert runtime.current_driver() is another
        assert runtime.current_driver() is one


def test_launch_hooks_are_taken_off_again() -> None:
    def hooks() -> list[object]:
        if runtime.VERSION < (3, 4):
            owner = runtime.CompiledKernel
            return [owner.launch_enter_hook, owner.launch_exit_hook]
        knobs = triton.knobs.runtime
        return [list(getattr(h, "calls", [h])) for h in (knobs.launch_enter_hook, knobs.launch_exit_hook)]

    def hook(metadata: object) -> None: ...

    before = hooks()
    with runtime.launch_hooks(hook, hook):
        assert hooks() != before
    assert hooks() == before


def test_what_an_emulation_replaces_is_there() -> None:
    places = runtime.emulation_places(print, print, print, print, print)
    assert [f"{o.__name__}.{name}" for o, name, _ in places if not hasattr(o, name)] == []
    assert len({(id(owner), name) for owner, name, _ in places}) == len(places)


def test_stages_are_wrapped_inside_of_the_block_alone() -> None:
    calls: list[object] = []

    def wrap(stage: object, options: object) -> object:
        calls.append(options)
        return stage

    target = load_gpu("h100").triton_target()
    backend = next(b.compiler for b in compiler.backends.values() if b.compiler.supports_target(target))(
        target
    )
    arguments = {}, backend.parse_options({}), *([None] if runtime.VERSION >= (3, 4) else [])
    with compiler.after_own_passes(wrap):
        backend.add_stages(*arguments)
    backend.add_stages(*arguments)
    assert len(calls) == 1


@pytest.mark.parametrize("arch", [80, 90, 100])
def test_ptxas_has_a_version(arch: int) -> None:
    assert int(compiler.ptxas(arch)[1].split(".")[0]) >= 12


def test_language_functions_and_their_patches_are_found() -> None:
    names = {(owner, name) for owner, name, _ in interpreter.builtins()}
    assert {
        (tl, "load"),
        (interpreter.LANGUAGES[1], "load"),
        (tl.tensor, "__add__"),
        (tl.math, "exp2"),
    } <= names
    kinds = {owner.__name__ for owner, _, _ in interpreter.pointers_of_blocks()}
    assert kinds == {"TensorDescHandle", *(["BlockPointerHandle"] if runtime.VERSION < (3, 8) else [])}


def test_numpy_has_a_type_for_every_type_of_tensors() -> None:
    for kind in (
        tl.float32,
        tl.bfloat16,
        tl.float8e5,
        tl.int1,
        tl.uint8,
        tl.int64,
        tl.pointer_type(tl.float16),
    ):
        assert interpreter.numpy_dtype(kind).itemsize >= 1


def test_a_tensor_is_passed_as_a_pointer_to_its_type() -> None:
    assert interpreter.pointer_type(torch.zeros(1, dtype=torch.float16)) == tl.pointer_type(tl.float16)


def test_the_key_of_compiled_kernels_tells_installations_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another build of the same version has other files, though nobody hashes them."""
    (tmp_path / "_C").mkdir()
    library = tmp_path / "_C/libtriton.so"
    library.write_text("one")
    monkeypatch.setattr(triton, "__file__", str(tmp_path / "__init__.py"))
    keys = [compiler._installation.__wrapped__()]
    library.write_text("another")
    keys.append(compiler._installation.__wrapped__())
    assert keys[0] != keys[1]
    assert all(key.startswith(triton.__version__) for key in keys)


def test_triton_hashes_its_files_for_others_alone() -> None:
    owners = [m for name in compiler._KEY_MAKERS if hasattr(m := sys.modules[name], "triton_key")]
    own = [owner.triton_key for owner in owners]
    assert own
    with compiler.quick_key():
        assert all(owner.triton_key is compiler._installation for owner in owners)
    assert [owner.triton_key for owner in owners] == own
