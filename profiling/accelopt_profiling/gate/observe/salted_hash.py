"""See whether code computes with a hash that is another number in every process.

Python salts the hashes of strings and bytes, and takes those of most objects from their addresses. As keys of tables
they do no harm; in arithmetic or a branch they have a process decide what all its calls do.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable
from typing import Any

#: Types of which equal values have equal hashes in all processes.
_SETTLED = (int, float, complex, bool, type(None))
#: What a number is for besides being looked up.
_OPERATIONS = (
    "add", "radd", "sub", "rsub", "mul", "rmul", "mod", "rmod", "divmod", "rdivmod", "floordiv", "rfloordiv", "truediv",
    "rtruediv", "pow", "rpow", "and", "rand", "or", "ror", "xor", "rxor", "lshift", "rlshift", "rshift", "rrshift",
    "neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "bool", "int", "float", "index", "repr", "str", "format",
)  # fmt: skip


class SaltedHashes:
    """Replaces ``hash`` for code below the folder ``source``.

    ``used`` tells that such a hash was computed with.
    """

    def __init__(self, source: str) -> None:
        self.used = False
        real, salted = builtins.hash, _salted_type(self._note)

        @functools.wraps(real)
        def hash_of(value: object, /) -> int:
            number = real(value)
            own = sys._getframe(1).f_code.co_filename.startswith(source)
            return salted(number) if own and not _is_settled(value) else number

        builtins.hash = hash_of

    def _note(self) -> None:
        self.used = True


def _is_settled(value: object) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(map(_is_settled, value))
    return type(value) in _SETTLED


def _salted_type(note: Callable[[], None]) -> type[int]:
    """Return a kind of numbers that call ``note`` when they are more than keys."""

    def noting(method: Any) -> Any:
        @functools.wraps(method)
        def noted(self: int, *arguments: Any) -> Any:
            note()
            return method(self, *arguments)

        return noted

    class Salted(int):
        __hash__ = int.__hash__

        def __eq__(self, other: object) -> bool:
            if isinstance(other, int) and not isinstance(other, Salted):
                note()
            return int.__eq__(self, other) is True

        def __ne__(self, other: object) -> bool:
            return not self == other

    for name in _OPERATIONS:
        setattr(Salted, f"__{name}__", noting(getattr(int, f"__{name}__")))
    return Salted
