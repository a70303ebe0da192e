"""Resolve the models that a search may ask from the settings and the person's consent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accelopt_agent.model.settings import ModelSettings
    from accelopt_agent.model.team import ModelTeam, Role
    from accelopt_lsp.settings.load import Settings


def configured_model(settings: Settings) -> ModelSettings | None:
    """Return the configured model, as roles without settings of their own ask it; None where none is."""
    model_settings = settings.model
    if not settings.asks_models:
        return None
    from accelopt_agent.model.settings import ModelSettings

    priced = bool(model_settings.price_in or model_settings.price_out)
    return ModelSettings(
        base_url=model_settings.base_url,
        model=model_settings.model,
        temperature=model_settings.temperature,
        key_variable=model_settings.api_key_env,
        price_in=model_settings.price_in if priced else None,
        price_out=model_settings.price_out if priced else None,
        price_cached=model_settings.price_cached or None,
        seconds=model_settings.seconds,
        answer_tokens=model_settings.answer_tokens,
        share=model_settings.share,
    )


def configured_team(settings: Settings) -> ModelTeam | None:
    """Return the configured model in each role, with what the settings say of that role; None where none is
    configured."""
    model = configured_model(settings)
    return None if model is None else team_of(settings, model)


def team_of(settings: Settings, model: ModelSettings, *, one_model: bool = False) -> ModelTeam:
    """Return ``model`` in each role, with what the settings say of that role and of the team. ``one_model``: no role
    has another one."""
    from accelopt_agent.model.team import ModelTeam

    def in_role(role: Role) -> ModelSettings:
        own = getattr(settings.model, role)
        temperature = model.temperature if own.temperature is None else own.temperature
        name = model.model if one_model else own.model or model.model
        return replace(model, model=name, temperature=temperature)

    return ModelTeam(
        planner=in_role("planner"),
        coder=in_role("coder"),
        debugger=in_role("debugger"),
        summarizer=in_role("summarizer"),
        samples=settings.model.samples,
        repairs=settings.model.repairs,
        alone=settings.model.alone,
    )


def consent_folder(settings: Settings, file: Path) -> Path:
    """Return the folder for which a consent is given: the project's, or that of a file outside of any."""
    return settings.project_root or file.resolve().parent


def resolve_team(settings: Settings, file: Path, *, in_editor: bool = False) -> tuple[ModelTeam | None, str]:
    """Return the team that may be asked about ``file``, or None and why not ("" where no model is
    configured)."""
    team = configured_team(settings)
    if team is None:
        return None, ""
    if team.planner.of_editor and not in_editor:
        return None, f"The model {team.models} is the editor's own: it is asked from the editor only."
    from accelopt_agent.model.consent import ConsentStore

    missing = ConsentStore().missing(team.planner, consent_folder(settings, file))
    return (team, "") if missing is None else (None, missing)
