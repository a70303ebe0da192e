"""Offers type stubs of NKI where a file imports it and nothing here resolves that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accelopt_lsp.actions import QUICKFIX
from accelopt_lsp.features.code_actions import CodeAction, offer
from accelopt_lsp.language.cursor import imported_names
from accelopt_lsp.language.vocabulary import LanguageVersions

PACKAGES = ("nki", "neuronxcc")


def stub_actions(
    uri: str, lines: Sequence[str], versions: LanguageVersions, only: Sequence[str] | None
) -> Iterator[CodeAction]:
    """Yield the action for some lines of a document; ``only`` are the kinds asked for, each with those below it."""
    asked_for = not only or any(kind == QUICKFIX or QUICKFIX.startswith(f"{kind}.") for kind in only)
    packages = {path.partition(".")[0] for path in imported_names("\n".join(lines)).values()}
    if asked_for and any(package in packages - versions.typed for package in PACKAGES):
        yield offer("writeStubs", {"uri": uri})
