"""Read from the settings how to search, what a search may use, and who proposes."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accelopt_lsp.errors import UserError

if TYPE_CHECKING:
    from accelopt_agent.model.team import ModelTeam
    from accelopt_agent.request import Budget, SearchPlan
    from accelopt_lsp.settings.load import Settings


#: The words of ``--budget``: what each limits, and how many of the budget's units one is.
_BUDGET = {
    "candidates": ("candidates", 1.0),
    "tokens": ("tokens", 1.0),
    "money": ("money", 1.0),
    "s": ("seconds", 1.0),
    "seconds": ("seconds", 1.0),
    "m": ("seconds", 60.0),
    "minutes": ("seconds", 60.0),
}


def search_plan(settings: Settings) -> SearchPlan:
    """Return the strategy of the settings with its own options, and who may propose."""
    from accelopt_agent.request import LessonLimits, SearchPlan
    from accelopt_agent.search.strategies import OPTIONS

    search = settings.search
    return SearchPlan(
        strategy=search.strategy,
        sources=frozenset(search.sources.split(",")),
        depth=search.depth or None,
        options={name: getattr(search, name) for name in OPTIONS[search.strategy]},
        experience=search.experience,
        lessons=LessonLimits(search.lessons, search.lesson_gain, search.lesson_loss),
    )


def search_budget(settings: Settings) -> Budget:
    """Return the limits of the settings."""
    from accelopt_agent.request import Budget

    search = settings.search
    return Budget(
        candidates=search.candidates,
        seconds=None if math.isinf(search.minutes) else search.minutes * 60.0,
        tokens=search.tokens or None,
        percent_of_peak=None if search.percent_of_peak >= 100 else search.percent_of_peak,
    )


def require_proposer(sources: Collection[str], team: ModelTeam | None) -> None:
    """Make sure that somebody proposes.

    Raises:
        UserError: a model is the only source, and none is asked.
    """
    if set(sources) == {"model"} and team is None:
        raise UserError(
            "Only a model may propose (`search.sources`), and none is asked: configure one (`accelopt model`), or "
            "in a benchmark give --model, --simulate or --conversation."
        )


def budget_of(settings: Settings, text: str | None) -> Budget:
    """Return the budget of the settings, with what ``text``, as of ``--budget``, says over it.

    Raises:
        UserError: the text is no budget.
    """
    limits: dict[str, Any] = {}
    for part in filter(None, (text or "").replace(" ", "").split(",")):
        match = re.fullmatch(r"([a-z]+)=(\d+(?:\.\d+)?)", part)
        united = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z]*)", part)
        word, amount = (
            (match[1], match[2]) if match else (united[2] or "candidates", united[1]) if united else ("", "")
        )
        if word not in _BUDGET or float(amount) <= 0:
            raise UserError(
                f"--budget: {part!r} is no limit; write 60, 5m, or candidates=60,minutes=5,tokens=100000."
            )
        name, unit = _BUDGET[word]
        limits[name] = int(float(amount)) if name in ("candidates", "tokens") else float(amount) * unit
    return replace(search_budget(settings), **limits)
