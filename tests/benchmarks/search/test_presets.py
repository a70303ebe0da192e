"""Presets are valid settings and come to the configurations that the papers report."""

from __future__ import annotations

import json
from inspect import signature
from pathlib import Path

import pytest

from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.search.strategies import OPTIONS, STRATEGIES
from accelopt_benchmarks.search import presets
from accelopt_benchmarks.search.presets import PRESETS, preset
from accelopt_lsp.cli.options import search_settings
from accelopt_lsp.models import team_of
from accelopt_lsp.search_plan import search_budget, search_plan
from accelopt_lsp.settings.load import load_settings
from accelopt_lsp.settings.schema import all_settings

FOLDER = Path(presets.__file__).parent


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_made_of_settings_and_says_where_it_is_from(name: str) -> None:
    assert json.loads((FOLDER / f"{name}.json").read_text("utf-8"))["source"]
    assert load_settings(environ={}, flags=preset(name)).complaints == ()


def test_accelopt_makes_as_many_plans_and_kernels_as_published() -> None:
    settings = load_settings(environ={}, flags=preset("accelopt"))
    plan, budget = search_plan(settings), search_budget(settings)
    beam = plan.options
    plans = beam["breadth"] * (1 + (beam["rounds"] - 1) * beam["width"])
    team = team_of(settings, ModelSettings("http://localhost/v1", "m"))
    assert (plan.strategy, plan.sources, plans) == ("beam", {"model"}, 1092)
    assert plans * team.samples == budget.candidates == 2184
    assert (team.repairs, team.planner.temperature, budget.tokens) == (0, None, None)


def test_stark_has_its_temperatures_and_attempts() -> None:
    settings = load_settings(environ={}, flags=preset("stark"))
    team = team_of(settings, ModelSettings("http://localhost/v1", "m", temperature=0.5))
    assert [team.of(r).temperature for r in ("planner", "coder", "debugger")] == [0.8, 0.1, 0.1]
    plan = search_plan(settings)
    assert (plan.strategy, plan.options["near_misses"]) == ("tree", False)
    assert search_budget(settings).candidates == 30


def test_an_option_wins_over_a_preset_and_a_preset_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCELOPT_SEARCH_WIDTH", "3")
    monkeypatch.setenv("ACCELOPT_SEARCH_BREADTH", "3")
    settings = search_settings(
        tmp_path, {}, preset=preset("accelopt"), strategy=None, given=["search.width=2"]
    )
    assert (settings.search.strategy, settings.search.width, settings.search.breadth) == ("beam", 2, 12)


@pytest.mark.parametrize("strategy", OPTIONS)
def test_the_settings_have_the_defaults_of_the_strategies(strategy: str) -> None:
    parameters = signature(STRATEGIES[strategy]).parameters
    defaults = {name: all_settings()[f"search.{name}"].default for name in OPTIONS[strategy]}
    assert defaults == {name: parameters[name].default for name in OPTIONS[strategy]}
