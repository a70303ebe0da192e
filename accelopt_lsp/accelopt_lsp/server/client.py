"""Read the capabilities and options of the editor. One that names none is served without anything optional."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lsprotocol import types

from accelopt_lsp.settings.layers import editor_settings


class SentCapabilities:
    """The capabilities as the editor sent them, by lsprotocol's attribute names; None for what is not there.

    lsprotocol would first build a type for each part of them: a hundred for VS Code, of which a dozen are looked at.
    """

    def __init__(self, sent: dict[str, Any]) -> None:
        self._sent = sent

    @classmethod
    def of(cls, sent: object, _: type) -> SentCapabilities:
        """Structure hook. Raises TypeError: it is no object."""
        if not isinstance(sent, dict):
            raise TypeError("the capabilities are no object")
        return cls(sent)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        first, *rest = name.split("_")
        value = self._sent.get(first + "".join(map(str.capitalize, rest)))
        return SentCapabilities(value) if isinstance(value, dict) else value


#: The options that are true or absent, and the attributes of ``Client`` that they become.
_FLAGS = {
    "status": "status", "pages": "pages", "searchEnded": "searches", "save": "saves", "versions": "versions",
    "pictures": "pictures", "hoverPictures": "hover_pictures", "languageModels": "models", "icons": "icons",
}  # fmt: skip


@dataclass(frozen=True)
class Client:
    """The client's capabilities and what it said in ``initializationOptions``.

    ``trusted`` is what the editor says of its folders, None where it says nothing: then, and for files outside of
    them, the person is asked. ``pythons`` are the interpreters that were chosen in it, by folder. ``status`` asks for
    ``accelopt/status`` notifications, ``pages`` for ``accelopt/show``, ``searches`` for ``accelopt/searchEnded``,
    ``saves`` for ``accelopt/save``, ``versions`` for ``accelopt/versions``, ``pictures`` for ``accelopt/pictures``,
    ``hover_pictures`` for images in Markdown;
    ``models`` tells that the editor lends its own; ``icons`` that it draws ``$(zap)`` in titles; ``commands`` are
    commands of the client itself that titles may call instead of a server command.
    """

    capabilities: types.ClientCapabilities | SentCapabilities = field(
        default_factory=lambda: SentCapabilities({})
    )
    trusted: bool | None = None
    pythons: dict[str, str] = field(default_factory=dict)
    status: bool = False
    pages: bool = False
    searches: bool = False
    saves: bool = False
    versions: bool = False
    pictures: bool = False
    hover_pictures: bool = False
    models: bool = False
    icons: bool = False
    commands: frozenset[str] = frozenset()
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, params: types.InitializeParams) -> Client:
        """Read the parameters of ``initialize``; options of a wrong type count as absent."""
        options = params.initialization_options
        values: dict[str, Any] = options if isinstance(options, dict) else {}
        commands, trusted, pythons = map(values.get, ("clientCommands", "trusted", "pythons"))
        own = {"clientCommands", "trusted", "pythons", *_FLAGS}
        flags = {field: values.get(name) is True for name, field in _FLAGS.items()}
        return cls(
            capabilities=params.capabilities,
            trusted=trusted if isinstance(trusted, bool) else None,
            pythons={f: p for f, p in pythons.items() if isinstance(p, str)}
            if isinstance(pythons, dict)
            else {},
            commands=frozenset(c for c in commands if isinstance(c, str))
            if isinstance(commands, list)
            else frozenset(),
            settings=editor_settings({k: v for k, v in values.items() if k not in own}),
            **flags,
        )

    def has(self, *path: str) -> bool:
        """Return whether the capability at ``path`` (attribute names of lsprotocol) is there and true."""
        return bool(self.get(*path))

    def get(self, *path: str) -> Any:
        """Return the capability at ``path``, None where any part of it is missing."""
        node: Any = self.capabilities
        for name in path:
            node = getattr(node, name, None)
        return node

    @property
    def resolves_edits(self) -> bool:
        support = self.get("text_document", "code_action", "resolve_support", "properties") or ()
        return "edit" in support and self.has("text_document", "code_action", "data_support")

    @property
    def code_action_literals(self) -> bool:
        return self.has("text_document", "code_action", "code_action_literal_support")

    @property
    def tags_llm_edits(self) -> bool:
        tags = self.get("text_document", "code_action", "tag_support", "value_set") or ()
        return types.CodeActionTag.LlmGenerated in tags

    @property
    def markdown_signatures(self) -> bool:
        formats = self.get("text_document", "signature_help", "signature_information", "documentation_format")
        return types.MarkupKind.Markdown in (formats or ())

    @property
    def markdown_hover(self) -> bool:
        return types.MarkupKind.Markdown in (self.get("text_document", "hover", "content_format") or ())
