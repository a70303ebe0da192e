"""Defines the error of an assertion that a compiler checks."""

from __future__ import annotations

from typing import Any


class StaticAssertionError(AssertionError):
    """``tl.static_assert`` fails: the kernel does not compile. ``kernel`` is the kernel's function, once known."""

    kernel: Any = None
