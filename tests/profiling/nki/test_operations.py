"""The table of operations against the emulator: each row binds, each name has a row, and no second list repeats it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from support import nki_current_source, nki_source

import accelopt_agent
import accelopt_profiling
from accelopt_profiling.nki.current.versions import changes
from accelopt_profiling.nki.data.instruction import ENGINES
from accelopt_profiling.nki.frontend.binding import computing, default_value
from accelopt_profiling.nki.install import emulated
from accelopt_profiling.nki.operations.table import DIALECTS, NkiDialect, Operation, operations, table
from accelopt_profiling.nki.time_model.hardware import hardware

ROWS = operations()
BOUND = [(d, o) for o in ROWS.values() for d in DIALECTS if d in o.computes]


@pytest.mark.parametrize(("dialect", "operation"), BOUND, ids=lambda v: v if isinstance(v, str) else v.name)
def test_the_function_of_a_row_takes_its_parameters(dialect: NkiDialect, operation: Operation) -> None:
    """What has an effect reaches the function by its name; of the rest the function does not know."""
    signature = operation.signatures[dialect]
    if signature.variadic:
        assert callable(computing(operation, dialect))
        return
    taken = inspect.signature(computing(operation, dialect)).parameters
    named = {n for n, p in taken.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    effective = {p.name for p in signature.parameters if not p.ignored}
    required = {n for n, p in taken.items() if p.default is p.empty and n in named}
    if dialect == "beta1" and "dst" in named:
        effective -= {"mask", "dtype", "shape"} - named  # what the allocated destination is made with
        today = operation.signatures["current"].parameters if operation.in_one_form else ()
        effective |= {"dst", *(p.name for p in today if not p.ignored)}
    assert effective <= named
    assert required <= effective
    for parameter in signature.parameters:
        if not parameter.required:
            default_value(parameter.default)


@pytest.mark.parametrize("name", [n for n, o in ROWS.items() if o.example])
def test_the_example_of_a_row_is_a_call_that_its_signature_allows(name: str) -> None:
    operation = ROWS[name]
    dialect = DIALECTS[-1] if DIALECTS[-1] in operation.signatures else DIALECTS[0]
    call = ast.parse(operation.example, mode="eval").body
    assert isinstance(call, ast.Call)
    assert ast.unparse(call.func) == name
    signature = operation.signatures[dialect]
    assert signature.variadic or len(call.args) <= len(signature.positional)
    given = [*signature.positional[: len(call.args)], *(k.arg for k in call.keywords)]
    assert len(set(given)) == len(given)
    assert signature.variadic or set(given) <= signature.names
    assert {p.name for p in signature.parameters if p.required} <= set(given) or signature.variadic


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_kernels_find_in_the_modules_has_a_row(dialect: NkiDialect) -> None:
    with emulated(sdk=False):
        for alias, package in table()["packages"][dialect].items():
            module = importlib.import_module(package)
            functions = {
                n for n, v in vars(module).items() if inspect.isfunction(v) and not n.startswith("_")
            }
            assert {f"{alias}.{n}" for n in functions} <= set(ROWS)


def test_every_row_is_complete() -> None:
    for operation in ROWS.values():
        assert operation.about, operation.name
        assert operation.signatures or operation.tokens, operation.name
        assert not operation.computes or operation.example, operation.name
        assert set(operation.computes) <= set(operation.signatures), operation.name
        parameters = set().union(*(s.names for s in operation.signatures.values()))
        assert {*operation.reads, *operation.writes} <= parameters, operation.name
        assert {*operation.engines, *operation.also} <= set(ENGINES), operation.name
        if operation.name.startswith("nisa.") and "current" in operation.computes:
            assert not operation.opcode or operation.engines, operation.name


def test_nothing_that_runs_is_told_to_be_gone() -> None:
    """Of what a compiler's older front end still takes, that is said."""
    for operation in ROWS.values():
        if "current" in operation.computes:
            assert "removed" not in operation.changes or "unless" in operation.changes, operation.name
    assert {"nki.isa.activate2", "nki.language.arange", "nki.baremetal"} <= set(changes("names"))


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "nisa.tensor_copy(x, x, engin=None)",
            ["no argument 'engin'", "nearest: engine", "(dst, src, engine="],
        ),
        ("nisa.activation(x, nl.exp)", ["needs the argument 'data'", "(dst, op, data, bias=None"]),
        ("nisa.reciprocal(x, x, x, x)", ["takes 3 arguments by position, not 4"]),
        ("nisa.reciprocal(x, x, dst=x)", ["'dst' twice"]),
        ("nl.exp(x, mask=None)", ["nl.exp has no argument 'mask'", "(x, dtype=None)"]),
        ("nl.zeros((128, 64), nl.float32, buffers=nl.sbuf)", ["nearest: buffer"]),
    ],
)
def test_a_call_with_other_arguments_is_told_on_its_line(statement: str, words: list[str]) -> None:
    fault = nki_current_source.run(
        f"x = nl.ndarray((128, 64), nl.float32, nl.sbuf)\nnisa.memset(x, 1.0)\n{statement}\nreturn a",
        np.zeros((128, 64), np.float32),
    ).fault
    assert fault is not None
    assert (fault.code, fault.line) == ("unsupported", nki_current_source.FIRST_LINE + 2)
    assert all(word in fault.message for word in words), fault.message


TYPED = sorted(o.name for d, o in BOUND if d == "beta1" and "dtype" in o.signatures[d].names)


@pytest.mark.parametrize("name", TYPED)
def test_a_misspelt_keyword_is_told_by_every_function(name: str) -> None:
    fault = nki_source.run(f"{name}(dtyp=nl.float32)\nreturn a", np.zeros((128, 64), np.float32)).fault
    assert fault is not None
    assert f"{name} has no argument 'dtyp' (nearest: dtype)" in fault.message


@pytest.mark.parametrize(
    "statement",
    [
        "t = nl.zeros((128, 64), nl.float32, lazy_initialization=True)",
        "t = nl.multiply(nl.load(a), 1.0, max_free_vec_size=64)",
        "for i in nl.affine_range(2, precise_schedule=True):\n    t = nl.load(a)",
        "for i in nl.sequential_range(2, directives=None):\n    t = nl.load(a)",
    ],
)
def test_beta1_takes_hints_that_are_for_the_compiler_alone(statement: str) -> None:
    run = nki_source.run(f"{statement}\nreturn a", np.zeros((128, 64), np.float32))
    assert run.fault is None


FAMILIES = [(d, o) for d, o in BOUND if o.family]
#: Operations that NumPy calls otherwise than ``nl``, or has not.
NUMPY = {
    "fmod": np.fmod,
    "mod": np.mod,
    "negative": np.negative,
    "abs": np.abs,
    "all": np.all,
    "divide": np.divide,
}


@pytest.mark.parametrize(
    ("dialect", "operation"), FAMILIES, ids=lambda v: v if isinstance(v, str) else v.name
)
def test_a_function_of_nl_runs_as_its_example_says_and_means_what_numpy_says(
    dialect: NkiDialect, operation: Operation
) -> None:
    bits = any(word in operation.short for word in ("bitwise", "shift", "invert"))
    a = np.arange(1, 1 + 128 * 4).reshape(128, 4) % 7 + 1
    a = a.astype(np.int32) if bits else (a / 8).astype(np.float32)
    body = f"""
    x = nl.load(a)
    y = nl.load(b)
    result = {operation.example}
    out = nl.ndarray(result.shape, dtype=result.dtype, buffer=nl.shared_hbm)
    nl.store(out, result)
    return out
    """
    run = nki_source.run if dialect == "beta1" else nki_current_source.run
    core = {"limits": hardware(f"trn{operation.generation - 1}").limits} if operation.generation else {}
    outcome = run(body, a, a[::-1].copy(), **core)
    if operation.impossible and dialect == "current":
        assert outcome.fault is not None
        assert operation.impossible in outcome.fault.message
        return
    assert outcome.fault is None, outcome.fault
    function = NUMPY.get(operation.short, getattr(np, operation.short, None))
    if function is None:
        return
    if operation.family == "reduction":
        expected = function(a, axis=1)
    else:
        expected = function(a, a[::-1]) if operation.family == "binary" else function(a)
    np.testing.assert_allclose(
        np.squeeze(outcome.result), np.squeeze(expected).astype(outcome.result.dtype), rtol=1e-5
    )


def test_an_instruction_of_both_dialects_is_written_once() -> None:
    both = [o for o in ROWS.values() if o.name.startswith("nisa.") and len(o.computes) == len(DIALECTS)]
    assert [o.short for o in both if not o.in_one_form] == []


@pytest.mark.parametrize("engine", ["vector", "gpsimd"])
@pytest.mark.parametrize("op", ["add", "subtract", "multiply"])
def test_integers_are_exact_on_gpsimd_alone_in_both_dialects(op: str, engine: str) -> None:
    a, b = np.full((128, 8), 2**24 + 1, np.int32), np.full((128, 8), 3, np.int32)
    function = getattr(np, op)
    expected = function(a, b) if engine == "gpsimd" else function(a.astype(np.float32), b.astype(np.float32))
    beta1 = f"""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nisa.tensor_tensor(nl.load(a), nl.load(b), nl.{op}, engine=nisa.{engine}_engine))
    return out
    """
    current = f"""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x, y = nl.load(a), nl.load(b)
    nisa.tensor_tensor(x, x, y, nl.{op}, engine=nisa.engine.{engine})
    nisa.dma_copy(out, x)
    return out
    """
    for run, body in ((nki_source.run, beta1), (nki_current_source.run, current)):
        outcome = run(body, a, b)
        assert outcome.fault is None
        np.testing.assert_array_equal(outcome.result, expected.astype(np.int32))


#: A list of this many functions of one dialect, written down elsewhere, repeats the table.
A_LIST = 4


def test_no_other_module_lists_functions() -> None:
    instructions = {o.short for n, o in ROWS.items() if n.startswith("nisa.")}
    lists: list[str] = []
    for package in (accelopt_profiling, accelopt_agent):
        folder = Path(package.__file__).parent
        for path in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.Dict)):
                    items = [k for k in (node.keys if isinstance(node, ast.Dict) else node.elts) if k]
                    words = [
                        i.value for i in items if isinstance(i, ast.Constant) and isinstance(i.value, str)
                    ]
                    named = {re.sub(r"^nisa\.", "", word) for word in words} & instructions
                    if len(named) >= A_LIST:
                        lists.append(
                            f"{path.relative_to(folder.parent)}:{node.lineno}: {', '.join(sorted(named))}"
                        )
    assert not lists, "take these from accelopt_profiling.nki.operations"


def test_a_reduction_over_a_loop_takes_its_arguments_by_name() -> None:
    body = """
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.zeros((128, 64), dtype=nl.float32)
    for i in nl.affine_range(2):
        total[...] = nl.loop_reduce(x=nl.load(a[i * 128:(i + 1) * 128, :]), op=np.add, loop_indices=i)
    nl.store(out, total)
    return out
    """
    array = np.random.default_rng(0).standard_normal((256, 64), dtype=np.float32)
    outcome = nki_source.run(body, array)
    assert outcome.fault is None
    np.testing.assert_allclose(outcome.result, array[:128] + array[128:], rtol=1e-6)
