"""Tell the installed version of AccelOpt LSP."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def own_version() -> str:
    """The installed version; "0" for sources that were never installed."""
    try:
        return version("accelopt-lsp")
    except PackageNotFoundError:
        return "0"
