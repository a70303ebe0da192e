"""Assigns a model to each role, with AccelOpt's and STARK's teams as presets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from accelopt_agent.model.settings import ModelSettings

Role = Literal["planner", "coder", "debugger", "summarizer"]
ROLES: tuple[Role, ...] = ("planner", "coder", "debugger", "summarizer")


@dataclass(frozen=True)
class ModelTeam:
    """The settings of each role. ``samples`` is how often the coder carries out one plan; ``repairs`` how often the
    debugger may correct an answer that fails a check before anything runs."""

    planner: ModelSettings
    coder: ModelSettings
    debugger: ModelSettings
    summarizer: ModelSettings
    samples: int = 1
    repairs: int = 1

    def of(self, role: Role) -> ModelSettings:
        settings: ModelSettings = getattr(self, role)
        return settings

    @property
    def models(self) -> str:
        """The names of the models that may be asked, each once."""
        return ", ".join(dict.fromkeys(self.of(role).model for role in ROLES))


def same_for_all(settings: ModelSettings) -> ModelTeam:
    """Return one model for every role."""
    return ModelTeam(settings, settings, settings, settings)


def accelopt_team(planner: ModelSettings, executor: ModelSettings) -> ModelTeam:
    """Return AccelOpt's team: two tries per plan at the server's temperature, and nobody who repairs. Goes with
    ``beam``."""
    return ModelTeam(planner, executor, executor, planner, samples=2, repairs=0)


def stark_team(settings: ModelSettings) -> ModelTeam:
    """Return STARK's team: a planner at temperature 0.8, coder and debugger at 0.1. Goes with ``tree``."""
    calm = replace(settings, temperature=0.1)
    return ModelTeam(replace(settings, temperature=0.8), calm, calm, calm)
