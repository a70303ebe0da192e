"""Name the search strategies: ``hybrid``, the default, and those of two papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from random import Random
from typing import Any

from accelopt_agent.search.node import Node
from accelopt_agent.search.strategies.beam import Beam
from accelopt_agent.search.strategies.hybrid import Hybrid
from accelopt_agent.search.strategies.strategy import Strategy
from accelopt_agent.search.strategies.tree import Tree

STRATEGIES: Mapping[str, Callable[..., Strategy]] = {
    "hybrid": Hybrid,
    "beam": Beam,
    "tree": Tree,
}

#: The options of each strategy that a person may set.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "hybrid": ("model_share", "repairs"),
    "beam": ("width", "breadth", "rounds", "incumbents"),
    "tree": ("epsilon", "root_children", "dead_after", "near_misses"),
}

#: The strategies that take ``prior``, what earlier outcomes let expect.
LEARNING = frozenset({"hybrid"})


def strategy_named(
    name: str, root: Node, sources: Sequence[str], *, target: str, depth: int, seed: int = 0, **options: Any
) -> Strategy:
    """Return the strategy ``name`` for the search from ``root``.

    ``name`` is one of ``STRATEGIES``, or ``MODULE:CLASS`` of a benchmark that compares with its own.
    ``options`` are its own settings, such as beam's ``width``. ``seed`` is what the strategies that draw lots draw
    from.

    Raises:
        KeyError: there is no strategy of that name.
    """
    module, colon, kind = name.partition(":")
    make = getattr(import_module(module), kind) if colon else STRATEGIES[name]
    strategy: Strategy = make(root, sources, target=target, depth=depth, random=Random(seed), **options)
    return strategy
