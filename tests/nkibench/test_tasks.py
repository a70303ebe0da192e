"""The 14 tasks: published figures, references, and baseline kernels on the emulator at legal shapes."""

import importlib.util
import inspect
import json

import numpy as np
import pytest

from accelopt_profiling.comparison.reference import widen
from accelopt_profiling.nki.install import emulated
from accelopt_profiling.targets.target import load_target
from nkibench.peaks import NoPeakError, evaluate, geometric_mean, peak_of
from nkibench.task import chosen, tasks

#: Small legal sizes, other than the tasks' own; rows or columns that are no multiple of a tile where that is allowed.
SMALL = {
    "adamw": {"M": 200, "N": 512},
    "add_rmsnorm_matmul": {"M": 128, "N": 512, "K": 256},
    "bmm": {"B": 2, "M": 128, "K": 48, "N": 512},
    "bmm_softmax": {"B": 2, "M": 128, "K": 64, "N": 1024},
    "gqa_full": {"B": 1, "N": 256, "QH": 4, "KH": 2, "D": 64},
    "lora": {"M": 128, "N": 512, "K": 256, "R": 32},
    "mamba": {"M": 1024, "C": 128, "S": 3},
    "matmul": {"M": 128, "N": 512, "K": 256},
    "matmul_add_rmsnorm": {"M": 128, "N": 512, "K": 256},
    "rmsnorm_matmul": {"M": 128, "N": 512, "K": 256},
    "rope_single_freq_apply": {"B": 1, "H": 2, "N": 512, "D": 96},
    "silu": {"M": 128, "N": 1024},
    "swiglu": {"M": 128, "N": 512, "K": 512},
    "transpose_matmul": {"M": 128, "N": 700, "K": 256},
}


def module(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def arguments(task, reference, sizes):
    np.random.seed(7)
    return reference.get_inputs(**sizes)


def test_there_are_14_tasks_with_everything_they_need():
    assert len(tasks()) == 14
    assert set(SMALL) == set(tasks())
    assert all(task.dialects == ["beta1", "nki"] for task in tasks().values())


@pytest.mark.parametrize("name", SMALL)
def test_the_data_file_says_what_the_reference_does(name):
    task = tasks()[name]
    reference = module(task.reference, "reference")
    defaults = {k: p.default for k, p in inspect.signature(reference.get_inputs).parameters.items()}
    assert defaults == task.values
    assert {k: getattr(reference, k) for k in task.values} == task.values
    assert reference.tolerance == task.gate_tolerance <= task.relative_tolerance
    sizes = SMALL[name]
    inputs = arguments(task, reference, sizes)
    assert list(inspect.signature(reference.forward).parameters) == [t.name for t in task.inputs]
    for tensor, value in zip(task.inputs, inputs, strict=True):
        if tensor.dtype == "scalar":
            assert value == tensor.value
        else:
            assert value.dtype == tensor.dtype
            assert value.shape == tuple(evaluate(part, sizes) for part in tensor.shape)
    expected = reference.forward(*[widen(v) for v in inputs])
    assert expected.dtype == np.float64
    assert expected.shape == tuple(evaluate(part, sizes) for part in task.outputs[0].shape)
    with np.errstate(over="ignore"):
        assert reference.forward(*inputs).dtype == np.float32


@pytest.mark.parametrize("name", SMALL)
def test_inputs_follow_numpys_global_seed(name):
    reference = module(tasks()[name].reference, "reference")
    first, again = (arguments(None, reference, SMALL[name]) for _ in range(2))
    np.random.seed(8)
    other = reference.get_inputs(**SMALL[name])
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize(
    ("name", "dialect"), [(name, dialect) for name in SMALL for dialect in tasks()[name].dialects]
)
def test_a_baseline_is_right_at_a_small_shape(name, dialect):
    task = tasks()[name]
    reference = module(task.reference, "reference")
    inputs = arguments(task, reference, SMALL[name])
    with emulated() as emulation:
        kernel = module(task.kernel(dialect), "kernel_file")
        result = kernel.kernel(*reference.transform_to_nki_inputs(inputs))
    assert emulation.machines
    assert [f for m in emulation.machines for f in m.findings] == []
    expected = reference.forward(*[widen(v) for v in inputs])
    (output,) = reference.transform_nki_outputs(result, expected)
    assert output.shape == expected.shape
    error = np.linalg.norm(output - expected) / np.linalg.norm(expected)
    assert error < task.gate_tolerance / 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dialect"), [("silu", "beta1"), ("rmsnorm_matmul", "beta1"), ("mamba", "nki")]
)
def test_a_baseline_is_right_at_the_published_shape(name, dialect):
    task = tasks()[name]
    reference = module(task.reference, "reference")
    np.random.seed(0)
    inputs = reference.get_inputs()
    with emulated(record=False):
        result = module(task.kernel(dialect), "kernel_file").kernel(*inputs)
    expected = reference.forward(*[widen(v) for v in inputs])
    assert np.linalg.norm(result - expected) < task.gate_tolerance * np.linalg.norm(expected)


def test_the_baselines_name_their_problem():
    for task in tasks().values():
        for dialect in task.dialects:
            assert task.kernel(dialect).read_text().startswith("# accelopt: problem=reference.py\n")


# Peaks

#: Least times on trn1 in ms as published (zhang677/AccelOpt 47e29a7, experiments/full_complete_local).
PUBLISHED_PEAK_MS = {
    "adamw": 1.018, "add_rmsnorm_matmul": 0.723, "bmm": 2.515, "bmm_softmax": 4.681, "gqa_full": 5.787,
    "lora": 22.469, "mamba": 0.819, "matmul": 21.701, "matmul_add_rmsnorm": 1.447, "rmsnorm_matmul": 0.723,
    "rope_single_freq_apply": 0.915, "silu": 0.534, "swiglu": 3.255, "transpose_matmul": 7.731,
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED_PEAK_MS)
def test_the_least_time_is_the_published_one(name):
    assert peak_of(tasks()[name], "trn1").us / 1000 == pytest.approx(PUBLISHED_PEAK_MS[name], abs=6e-4)


def test_the_published_baselines_have_the_published_geometric_mean():
    shares = [
        peak_of(task, "trn1").us / 1000 / task.published["trn1"].baseline_ms for task in tasks().values()
    ]
    assert geometric_mean(shares) == pytest.approx(0.492, abs=1e-3)


def test_trn2_has_other_rates_and_trn3_none():
    assert peak_of(tasks()["silu"], "trn2").us == pytest.approx(2 * 4096 * 7168 * 4 / 640e9 * 1e6)
    with pytest.raises(NoPeakError, match=r"trn1, trn2"):
        peak_of(tasks()["silu"], "trn3")
    assert {load_target(t).kind for t in ("trn1", "trn2")} == {"neuron"}


def test_a_formula_computes_and_nothing_else():
    assert evaluate("2*M*N*K + M*N - N//2", {"M": 3, "N": 4, "K": 5}) == 130
    for wrong in (
        "M/2",
        "M**2",
        "__import__('os')",
        "M.real",
        "M[0]",
        "2.5*M",
        "M*",
        "X",
        "M//0",
        "",
        "True",
    ):
        with pytest.raises(ValueError, match=r"M|X|computed|quotient"):
            evaluate(wrong, {"M": 3})


def test_an_unknown_task_is_named():
    with pytest.raises(ValueError, match="no task 'silly'"):
        chosen(["silu", "silly"])
    assert [t.name for t in chosen(["silu", "bmm", "silu"])] == ["silu", "bmm"]


def test_every_published_number_has_a_source():
    for task in tasks().values():
        data = json.loads((task.folder / "task.json").read_text())
        assert "47e29a7" in data["source"]
        assert ("held_out" in data) == (task.published["trn1"].best_fraction is None)
