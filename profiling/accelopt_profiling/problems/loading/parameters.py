"""Draw the parameters of a model anew, alike in a reference's model and in a kernel's.

Fresh models often hold ones and zeros, which a kernel may leave out and still be right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from accelopt_profiling.comparison.values import leaves_in

#: A number is multiplied by 1 more or less this; an array of zeros becomes numbers up to this. Signs stay.
_SPREAD = 0.25


def parameter_shapes(model: Any) -> dict[str, list[int]]:
    """Return the floating parameters of a model by name.

    None where it holds tensors that may have been made of them.
    """
    import torch

    if any(True for _ in _loose_tensors(model)):
        return {}
    parameters = torch.nn.Module.named_parameters(model)
    return {name: list(p.shape) for name, p in parameters if p.is_floating_point() and p.numel()}


def redraw(model: Any, shapes: Mapping[str, Sequence[int]], buffers: int, seed: int) -> bool:
    """Draw the parameters in ``shapes`` anew, each from ``seed`` and its place, and put them into ``model``: by their
    names where it has no others, else in order where the shapes agree one by one. False, with nothing changed, where
    neither holds, or the model keeps tensors besides its parameters and more floating ``buffers`` than the reference.
    """
    import torch

    parameters = torch.nn.Module.named_parameters(model)
    own = {name: p for name, p in parameters if p.is_floating_point() and p.numel()}
    expected = {name: list(shape) for name, shape in shapes.items()}
    if floating_buffers(model) > buffers or any(True for _ in _loose_tensors(model)):
        return False
    if all(expected.get(name) == list(p.shape) for name, p in own.items()):
        chosen = [own.get(name) for name in expected]
    elif [list(p.shape) for p in own.values()] == list(expected.values()):
        chosen = list(own.values())
    else:
        return False
    for number, parameter in enumerate(chosen):
        if parameter is not None:
            _redraw(parameter, seed + number)
    return True


def floating_buffers(model: Any) -> int:
    """Return how many floating buffers a model has."""
    import torch

    return sum(1 for _, b in torch.nn.Module.named_buffers(model) if b.is_floating_point())


def _redraw(parameter: Any, seed: int) -> None:
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        noise = _SPREAD * (2 * torch.rand(parameter.shape, generator=generator) - 1)
        old = parameter.detach().cpu().float()
        parameter.copy_(old * (1 + noise) if bool((old != 0).any()) else noise)


def _loose_tensors(model: Any) -> Iterator[Any]:
    """Tensors that modules hold as plain attributes: they may be copies of parameters, packed for a kernel."""
    import torch

    for module in torch.nn.Module.modules(model):
        for name, value in vars(module).items():
            if name not in ("_parameters", "_buffers", "_modules"):
                yield from (v for v in leaves_in(value) if isinstance(v, torch.Tensor))
