"""Count the work of interpreting, in units that are the same on every machine and under any load."""

from __future__ import annotations

from dataclasses import dataclass

#: What the interpreter does around one operation, whatever its size, costs as much as so many elements of it: measured
#: once, to choose a figure that decides what is too much. It is no result.
OPERATION = 8192
#: Multiplications and additions of a matrix product that cost as much as one element of another operation.
PRODUCTS = 16
#: Units that a second brought on two cores of x86-64. For messages only.
PER_SECOND = 1_000_000_000


class WorkExceededError(Exception):
    """Interpreting takes more work than it was given."""


@dataclass
class WorkMeter:
    """``spent`` so far, in elements; beyond ``most`` the run ends."""

    spent: int = 0
    most: int | None = None

    def spend(self, elements: int) -> None:
        """Note an operation on so many elements.

        Raises:
            WorkExceededError: it is one too many.
        """
        self.spent += OPERATION + elements
        if self.most is not None and self.spent > self.most:
            raise WorkExceededError(f"more than {self.most / PER_SECOND:.3g} billion element operations")
