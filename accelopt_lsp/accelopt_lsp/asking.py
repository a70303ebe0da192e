"""From the settings to the model that a search may ask, with the consent that it takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accelopt_agent.model.settings import ModelSettings
    from accelopt_lsp.settings.load import Settings


def model_of(settings: Settings) -> ModelSettings | None:
    """The configured model; None where none is."""
    asked = settings.model
    if not asked.configured:
        return None
    from accelopt_agent.model.settings import ModelSettings

    priced = bool(asked.price_in or asked.price_out)
    return ModelSettings(
        base_url=asked.base_url,
        model=asked.model,
        key_variable=asked.api_key_env,
        price_in=asked.price_in if priced else None,
        price_out=asked.price_out if priced else None,
        price_cached=asked.price_cached or None,
        seconds=asked.seconds,
        answer_tokens=asked.answer_tokens,
        share=asked.share,
    )


def workspace_of(settings: Settings, file: Path) -> Path:
    """The folder for which a consent is given: the project's, or that of a file outside of any."""
    return settings.project_root or file.resolve().parent


def model_to_ask(settings: Settings, file: Path) -> tuple[ModelSettings | None, str]:
    """The model that may be asked about ``file``, or None and why not ("" where none is configured)."""
    model = model_of(settings)
    if model is None:
        return None, ""
    from accelopt_agent.model.consent import Consents

    missing = Consents().missing(model, workspace_of(settings, file))
    return (model, "") if missing is None else (None, missing)
