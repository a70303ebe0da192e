"""Parameters drawn anew: alike in two models, and left where they cannot be."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from accelopt_profiling.problems.loading.parameters import floating_buffers, parameter_shapes, redraw


class Reference(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(6), nn.Linear(6, 4)


class Flat(nn.Module):
    """The same parameters in the same order, under other names."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.b = nn.Parameter(torch.ones(6)), nn.Parameter(torch.zeros(6))
        fc = nn.Linear(6, 4)
        self.m, self.c = fc.weight, fc.bias


class Packed(Reference):
    def __init__(self) -> None:
        super().__init__()
        self.packed = [self.fc.weight.detach().t().contiguous()]


class Buffered(Reference):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("transposed", self.fc.weight.detach().t().contiguous())


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(6)


class Other(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.joined = nn.Parameter(torch.ones(40))


@pytest.mark.parametrize(
    ("kind", "placed"),
    [(Reference, True), (Flat, True), (Part, True), (nn.Identity, True), (Packed, False), (Buffered, False),
     (Other, False)],
)  # fmt: skip
def test_both_models_get_the_same(kind: type[nn.Module], placed: bool) -> None:
    torch.manual_seed(1)
    model = Reference()
    shapes = parameter_shapes(model)
    assert list(shapes) == ["norm.weight", "norm.bias", "fc.weight", "fc.bias"]
    assert redraw(model, shapes, floating_buffers(model), 5)
    assert model.norm.weight.std() > 0.01
    assert model.norm.bias.std() > 0.01
    assert (model.norm.weight > 0).all()
    torch.manual_seed(1)
    other = kind()
    before = [p.detach().clone() for p in other.parameters()]
    assert redraw(other, shapes, 0, 5) is placed
    drawn = list(model.parameters()) if placed else before
    assert all(torch.equal(a, b) for a, b in zip(other.parameters(), drawn, strict=False))


def test_a_reference_with_tensors_of_its_own_keeps_its_parameters() -> None:
    assert parameter_shapes(Packed()) == {}
