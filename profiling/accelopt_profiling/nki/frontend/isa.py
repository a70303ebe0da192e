"""The part of ``nki.isa`` that both dialects share."""

from __future__ import annotations

from enum import Enum


class ReduceCmd(Enum):
    """``nisa.reduce_cmd``: the use of an engine's accumulator registers."""

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4
