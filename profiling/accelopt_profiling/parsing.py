"""Python source to a syntax tree, safely from several threads."""

from __future__ import annotations

import ast

#: How often a parse that CPython spoiled itself is repeated; one repeat is enough unless it is spoiled again.
ATTEMPTS = 10


def parse_python(text: str) -> ast.Module:
    """``ast.parse(text)``, repeated where CPython up to 3.12 fails without a fault of the text.

    Those versions count the depth of the tree they build in one place for all threads, so a parse during which
    another thread parses may end in ``SystemError: AST constructor recursion depth mismatch``
    (python/cpython#106905; once in some thousand parses of three busy threads on 3.11.7).

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as ``ast.parse``.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return ast.parse(text)
        except SystemError:
            continue
    return ast.parse(text)
