"""Fills in the prompts: Markdown files with ``{{placeholders}}``, each of which must get a value."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_PLACEHOLDER = re.compile(r"\{\{\s*([a-z_]+)\s*\}\}")


@cache
def template(name: str) -> str:
    """Return the text of ``prompts/NAME.md``."""
    return resources.files(__package__).joinpath(f"prompts/{name}.md").read_text("utf-8")


def placeholders(name: str) -> set[str]:
    return set(_PLACEHOLDER.findall(template(name)))


def render(name: str, **values: str) -> str:
    """Return the prompt ``name`` with every placeholder filled.

    What a value holds is never read as a placeholder.

    Raises:
        ValueError: values are missing, or the prompt has no place for one.
    """
    names = placeholders(name)
    if names != values.keys():
        missing, extra = sorted(names - values.keys()), sorted(values.keys() - names)
        raise ValueError(f"prompt {name}: missing {missing}, no place for {extra}")
    return _PLACEHOLDER.sub(lambda match: values[match.group(1)], template(name))


def fenced(text: str, language: str = "python") -> str:
    """Return ``text`` as a fenced block whose fence is longer than any run of backticks inside it, so that no text
    can end its own block."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
