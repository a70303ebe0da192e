"""Marks a text, at its end, with the simulated edits that break it and those that change no cost."""

from __future__ import annotations

from typing import Literal

#: How an edit is broken: the kernel does not run, or it runs and its result is wrong.
Fault = Literal["crash", "wrong"]

_BROKEN, _SAME = "_BROKEN", "_SAME"


def broken(text: str, fault: Fault, number: int) -> str:
    return f'{text.rstrip()}\n{_BROKEN}_{number} = "{fault}"\n'


def same(text: str, number: int) -> str:
    """Return another text whose kernel costs what it cost before."""
    return f"{text.rstrip()}\n{_SAME}_{number} = 0\n"


def fault_of(text: str) -> Fault | None:
    lines = [line for line in _marks(text) if line.startswith(_BROKEN)]
    if not lines:
        return None
    return "crash" if any("crash" in line for line in lines) else "wrong"


def repaired(text: str) -> str:
    """Return the text without the marks of broken edits."""
    lines = [line for line in text.rstrip().split("\n") if not line.startswith(_BROKEN)]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Return the text without any marks: what rules are applied to and costs are known of."""
    lines = [line for line in text.rstrip().split("\n") if not line.startswith((_BROKEN, _SAME))]
    return "\n".join(lines).rstrip() + "\n"


def marked_as(text: str, like: str) -> str:
    """Return ``text``, which has no marks, with those of ``like``."""
    return "\n".join([text.rstrip(), *_marks(like)]) + "\n"


def marks_of(text: str) -> str:
    """Return all marks of the text, in their order. Empty where it has none."""
    return " ".join(_marks(text))


def _marks(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith((_BROKEN, _SAME))]
