"""What a server turned out not to understand, so that it is left out of the next request to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from accelopt_agent.model.settings import ModelSettings

#: A JSON schema and its name, for servers that can hold a model to one.
Schema = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Traits:
    """``structured``: it takes ``response_format`` with a JSON schema. ``usage``: it takes ``stream_options``.
    ``completion_limit``: it wants ``max_completion_tokens`` in place of ``max_tokens``. ``streams``: it streams."""

    structured: bool = True
    usage: bool = True
    completion_limit: bool = False
    streams: bool = True

    def options(self, settings: ModelSettings, schema: Schema | None) -> dict[str, Any]:
        """The request's fields beside model and messages."""
        limit = "max_completion_tokens" if self.completion_limit else "max_tokens"
        options: dict[str, Any] = {limit: settings.answer_tokens, "stream": self.streams}
        if self.streams and self.usage:
            options["stream_options"] = {"include_usage": True}
        if settings.temperature is not None:
            options["temperature"] = settings.temperature
        if schema is not None and self.structured:
            wanted = {"name": schema[0], "strict": True, "schema": schema[1]}
            options["response_format"] = {"type": "json_schema", "json_schema": wanted}
        return options

    def without_what(self, complaint: str, schema: Schema | None) -> Traits | None:
        """What is left after a rejected request, judged by what the server complains of; None when its complaint
        is about none of these, so that asking again is of no use."""
        said = complaint.lower()
        if "max_completion_tokens" in said and not self.completion_limit:
            return replace(self, completion_limit=True)
        if "stream_options" in said and self.usage:
            return replace(self, usage=False)
        about_format = any(word in said for word in ("response_format", "json_schema", "schema", "grammar"))
        if about_format and schema is not None and self.structured:
            return replace(self, structured=False)
        if "stream" in said and self.streams:
            return replace(self, streams=False)
        return None


_known: dict[tuple[str, str], Traits] = {}


def traits_of(settings: ModelSettings) -> Traits:
    """What is known of the settings' server and model in this process."""
    return _known.get((settings.base_url, settings.model), Traits())


def remember_traits(settings: ModelSettings, traits: Traits) -> None:
    _known[settings.base_url, settings.model] = traits
