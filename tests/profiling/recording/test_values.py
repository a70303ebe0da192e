"""Arguments as data: what is written gives the same arguments again."""

from __future__ import annotations

import enum
import json
import math
from typing import Any

import pytest
import torch

from accelopt_profiling.recording.recorded_call import (
    RecordedCall,
    Recording,
    covering,
    headline_first,
    parse_recording,
    recording_text,
)
from accelopt_profiling.recording.tensor_fill import SAVED_FLOATS, describe, fill
from accelopt_profiling.recording.value_encoding import UnrecordableValueError, decode, encode


class Order(enum.Enum):
    ROWS = 1


def round_trip(*values: Any) -> list[Any]:
    encoded = encode([(f"a{n}", v) for n, v in enumerate(values)])
    storages, _ = encoded.storages(1 << 20)
    plain = json.loads(json.dumps([encoded.values, storages]))
    return decode(plain[0], [fill(s, n) for n, s in enumerate(plain[1])], None)


def test_plain_values_come_back() -> None:
    values = [
        1,
        True,
        None,
        "mean",
        0.5,
        -math.inf,
        (1, (2, None)),
        [3],
        {"a": (1,)},
        torch.float16,
        slice(0, 3),
    ]
    assert round_trip(*values, Order.ROWS) == [*values, Order.ROWS]
    assert math.isnan(round_trip(math.nan)[0])


@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.int32, torch.bool, torch.uint8, torch.bfloat16, torch.float32]
)
def test_small_tensors_come_back_bit_by_bit(dtype: torch.dtype) -> None:
    tensor = (torch.arange(24).reshape(4, 6) % 5).to(dtype)
    (again,) = round_trip(tensor)
    assert again.dtype == dtype
    assert torch.equal(again, tensor)


def test_strides_views_and_shared_memory_come_back() -> None:
    packed = torch.arange(60.0).reshape(5, 12)
    q, k = packed[:, :4], packed[:, 2:8].t()
    a, b, same = round_trip(q, k, q)
    assert a.stride() == q.stride()
    assert torch.equal(a, q)
    assert torch.equal(b, k)
    b[0, 0] = -1.0
    assert a[0, 2] == -1.0
    assert same is a


def test_a_parameter_asks_for_its_gradient() -> None:
    (again,) = round_trip(torch.nn.Parameter(torch.ones(3)))
    assert again.requires_grad
    assert again.is_leaf


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (torch.zeros(9), "constant"),
        (torch.randn(40_000) * 3 + 1, "normal"),
        (torch.rand(40_000), "uniform"),
        (-torch.rand(40_000).log(), "quantiles"),
        (torch.randint(0, 9, (40_000,)), "saved"),
    ],
)
def test_a_distribution_is_named_and_drawn_anew(values: torch.Tensor, kind: str) -> None:
    how, exact = describe(values, 1 << 20)
    assert how["fill"] == kind
    assert exact == (kind in ("constant", "saved"))
    again = fill({"dtype": str(values.dtype).removeprefix("torch."), "elements": len(values), **how}, 7)
    assert again.double().mean() == pytest.approx(values.double().mean().item(), abs=0.1)
    assert again.double().std() == pytest.approx(values.double().std().item(), rel=0.1)
    assert again.min() >= values.min() - (1 if kind == "normal" else 1e-5)


def test_integers_that_nobody_wrote_are_zeros_and_said_to_be_unknown() -> None:
    unknown = torch.full((SAVED_FLOATS,), torch.iinfo(torch.int64).max)  # as the stand-in leaves new memory
    storages, approximated = encode([("index", unknown)]).storages(1 << 20)
    assert approximated == ["index"]
    assert not fill(storages[0], 0).any()


def test_an_object_with_a_state_is_refused() -> None:
    for value in (object(), lambda x: x, torch.nn.Linear(2, 2), torch.eye(3).to_sparse()):
        with pytest.raises(UnrecordableValueError):
            encode([("value", value)])


def test_a_recording_reads_what_it_wrote_and_refuses_the_rest() -> None:
    calls = [
        RecordedCall("f", [1], kernels={"a": 1}, count=2, bytes=10),
        RecordedCall("f", [2], ["n"], kernels={"a": 1, "b": 2}, bytes=100),
        RecordedCall("a", [3], grid=[4], kernels={"a": 1}, bytes=1),
    ]
    ordered = headline_first(calls)
    assert [c.bytes for c in ordered] == [100, 10, 1]
    assert covering(ordered) == [0]
    assert covering(ordered[1:]) == [0]
    recording = Recording("k.py", ["pytest"], "", ordered)
    assert parse_recording(recording_text(recording)) == recording
    for text in (
        "[]",
        '{"accelopt_recording": 9}',
        '{"accelopt_recording": 1, "kernel_file": "k.py", "calls": []}',
    ):
        with pytest.raises(ValueError, match="it "):
            parse_recording(text)
