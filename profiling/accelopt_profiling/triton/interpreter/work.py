"""Count the work of interpreting, in units that are the same on every machine and under any load."""

from __future__ import annotations

from dataclasses import dataclass

#: What the interpreter does around one operation, whatever its size, costs as much as so many elements of it: measured
#: once, to choose a figure that decides what is too much. It is no result.
OPERATION = 8192
#: Multiplications and additions of a matrix product that cost as much as one element of another operation.
PRODUCTS = 16
#: What two cores of x86-64 interpret in about a second, measured once: bounds are so many of these.
SECOND = 250_000_000


class WorkExceededError(Exception):
    """Interpreting takes more work than it was given."""


@dataclass
class WorkMeter:
    """Operations so far and the ``elements`` that they were on. Beyond ``most`` in all the run ends."""

    operations: int = 0
    elements: int = 0
    most: int | None = None

    @property
    def surroundings(self) -> int:
        """What the interpreter did around the operations, in elements."""
        return OPERATION * self.operations

    @property
    def spent(self) -> int:
        return self.surroundings + self.elements

    def spend(self, elements: int) -> None:
        """Note an operation on so many elements.

        Raises:
            WorkExceededError: it is one too many.
        """
        self.operations += 1
        self.elements += elements
        if self.most is not None and self.spent > self.most:
            raise WorkExceededError(f"interpreting takes more than {self.most:.3g} element operations")
