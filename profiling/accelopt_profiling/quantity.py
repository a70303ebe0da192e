"""Numbers with their provenance; nothing in this project reports a number in any other way."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Known(str, Enum):
    """The ways in which a quantity is known. They are never mixed or printed as one another."""

    MEASURED = "measured"  # a device timed or counted it
    EXECUTED = "executed"  # counted while interpreting the kernel
    COMPILED = "compiled"  # reported by the compiler for the target
    ESTIMATED = "estimated"  # a model; always with an interval
    NOT_MEASURED = "not measured"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Quantity:
    """A value with its unit, its interval and how it is known.

    ``low`` and ``high`` bound the value: an estimate always has them, a measurement has them as its
    confidence interval, a count has neither.

    Raises:
        ValueError: an estimate without an interval, or a value for something not measured.
    """

    value: float | None
    known: Known
    unit: str = ""
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if self.known is Known.NOT_MEASURED:
            if self.value is not None:
                raise ValueError("a quantity that was not measured has no value")
        elif self.value is None:
            raise ValueError(f"a quantity that is {self.known} needs a value")
        if self.known is Known.ESTIMATED and (self.low is None or self.high is None):
            raise ValueError("an estimate needs an interval")


def executed(value: float, unit: str = "") -> Quantity:
    return Quantity(value, Known.EXECUTED, unit)


def compiled(value: float, unit: str = "") -> Quantity:
    return Quantity(value, Known.COMPILED, unit)


def estimated(value: float, low: float, high: float, unit: str = "") -> Quantity:
    return Quantity(value, Known.ESTIMATED, unit=unit, low=low, high=high)


def measured(value: float, low: float | None = None, high: float | None = None, unit: str = "") -> Quantity:
    return Quantity(value, Known.MEASURED, unit=unit, low=low, high=high)


def not_measured(unit: str = "") -> Quantity:
    return Quantity(None, Known.NOT_MEASURED, unit)


@dataclass(frozen=True)
class CounterMove:
    """A counter that differs between two versions of a kernel: both values, their unit and how they are known."""

    name: str
    before: float
    after: float
    unit: str = ""
    known: Known = Known.ESTIMATED
