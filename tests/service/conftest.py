"""The scripted server and an editor for it."""

from support.server_fixtures import decisions, editor, environment, imported

__all__ = ["decisions", "editor", "environment", "imported"]
