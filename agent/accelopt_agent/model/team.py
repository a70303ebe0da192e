"""Assigns a model to each role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from accelopt_agent.model.settings import ModelSettings

Role = Literal["planner", "coder", "debugger", "summarizer"]
ROLES: tuple[Role, ...] = ("planner", "coder", "debugger", "summarizer")


@dataclass(frozen=True)
class ModelTeam:
    """The settings of each role.

    ``samples`` is how often the coder carries out one plan; ``repairs`` how often the debugger may correct an answer
    that fails a check before anything runs. ``alone``: the coder decides itself what to change, and nobody plans; what
    an ablation calls search without a team.
    """

    planner: ModelSettings
    coder: ModelSettings
    debugger: ModelSettings
    summarizer: ModelSettings
    samples: int = 1
    repairs: int = 1
    alone: bool = False

    def of(self, role: Role) -> ModelSettings:
        settings: ModelSettings = getattr(self, role)
        return settings

    @property
    def setup(self) -> str:
        """What answers depend on besides the questions, as one line: the key of a result holds it."""
        roles = [f"{role} {self.of(role).model} at {self.of(role).temperature}" for role in ROLES]
        return f"{', '.join(roles)}; {self.samples} samples, {self.repairs} repairs{', alone' if self.alone else ''}"

    @property
    def models(self) -> str:
        """The names of the models that may be asked, each once."""
        return ", ".join(dict.fromkeys(self.of(role).model for role in ROLES))


def same_for_all(settings: ModelSettings) -> ModelTeam:
    """Return one model for every role."""
    return ModelTeam(settings, settings, settings, settings)
