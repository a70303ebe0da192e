"""Writes instructions in either dialect: a line of code for each, and a tile's allocation where it needs one."""

from __future__ import annotations

from dataclasses import dataclass

from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiKernel
from accelopt_profiling.nki.operations.table import operations

_WORDS = (
    "ndarray", "par_dim", "arange", "ds", "sbuf", "psum", "float32", "bfloat16", "zeros", "full", "copy", "multiply",
    "exp", "add", "subtract", "max", "maximum", "reciprocal", "sequential_range",
)  # fmt: skip


@dataclass(frozen=True)
class TileWriter:
    """``nl`` and ``nisa`` are what functions of the two modules are called in the file, ``mutates`` tells that
    instructions write their first argument. A destination is a name, or a part of a tile that was made with ``new``."""

    nl: dict[str, str]
    nisa: dict[str, str]
    mutates: bool

    @classmethod
    def of(cls, kernel: NkiKernel) -> TileWriter | None:
        """Return a writer for the kernel's file, None if that does not import what is needed."""
        instructions = [o.short for o in operations().values() if o.name.startswith(f"{NISA}.")]
        nl, nisa = (
            {word: spelled for word in words if (spelled := kernel.spelled(f"{module}.{word}"))}
            for module, words in ((NL, _WORDS), (NISA, instructions))
        )
        complete = len(nl) == len(_WORDS) and len(nisa) == len(instructions)
        return cls(nl, nisa, kernel.dialect.mutates) if complete else None

    @property
    def float32(self) -> str:
        return self.nl["float32"]

    @property
    def bfloat16(self) -> str:
        return self.nl["bfloat16"]

    @property
    def psum(self) -> str:
        return self.nl["psum"]

    @property
    def sequential(self) -> str:
        """A range whose iterations may need one another."""
        return "range" if self.mutates else self.nl["sequential_range"]

    def new(self, name: str, rows: str, columns: str, dtype: str | None, space: str | None = None) -> str:
        """Return the statement that makes a tile to be written part by part."""
        first = rows if self.mutates else f"{self.nl['par_dim']}({rows})"
        options = f"dtype={dtype or self.float32}, buffer={space or self.nl['sbuf']}"
        return f"{name} = {self.nl['ndarray']}(({first}, {columns}), {options})"

    def tile(
        self, name: str, rows: str, columns: str, dtype: str | None, space: str | None = None
    ) -> list[str]:
        """Return what has to stand before an instruction that writes the whole tile ``name``."""
        return [self.new(name, rows, columns, dtype, space)] if self.mutates else []

    def filled(self, name: str, rows: str, columns: str, value: str, space: str | None = None) -> list[str]:
        if self.mutates:
            allocation = self.new(name, rows, columns, self.float32, space)
            return [allocation, f"{self.nisa['memset']}({name}, {value})"]
        options = f"dtype={self.float32}, buffer={space or self.nl['sbuf']}"
        return [f"{name} = {self.nl['full']}(({rows}, {columns}), {value}, {options})"]

    def sum_in_psum(self, name: str, rows: str, columns: str) -> list[str]:
        """Return what makes a tile that products are added to."""
        if self.mutates:
            return [self.new(name, rows, columns, self.float32, self.psum)]
        options = f"dtype={self.float32}, buffer={self.psum}"
        return [f"{name} = {self.nl['zeros']}(({rows}, {columns}), {options})"]

    def part(self, name: str, rows: str, start: str, columns: str) -> str:
        """Return columns of a tile, as an operand or a destination."""
        if self.mutates:
            return f"{name}[:, {self.nl['ds']}({start}, {columns})]"
        arange = self.nl["arange"]
        return f"{name}[{arange}({rows})[:, None], {start} + {arange}({columns})[None, :]]"

    def copy(self, to: str, data: str, dtype: str | None = None) -> str:
        if self.mutates:
            return f"{self.nisa['tensor_copy']}({to}, {data})"
        return f"{to} = {self.nl['copy']}({data}{f', dtype={dtype}' if dtype else ''})"

    def scale(self, to: str, data: str, number: str) -> str:
        if self.mutates:
            return f"{self.nisa['tensor_scalar']}({to}, {data}, {self.nl['multiply']}, {number})"
        return f"{to} = {self.nl['multiply']}({data}, {number})"

    def by_column(self, to: str, data: str, column: str) -> str:
        """Return the product of a tile with a column of one number per row."""
        return self.scale(to, data, column)

    def transpose(self, to: str, data: str) -> str:
        name = self.nisa["nc_transpose"]
        return f"{name}({to}, {data})" if self.mutates else f"{to} = {name}({data})"

    def product(self, to: str, stationary: str, moving: str) -> str:
        name = self.nisa["nc_matmul"]
        return (
            f"{name}({to}, {stationary}, {moving})"
            if self.mutates
            else f"{to} = {name}({stationary}, {moving})"
        )

    def product_added(self, to: str, stationary: str, moving: str) -> str:
        """Return a product that adds to what ``sum_in_psum`` made."""
        return self.product(to, stationary, moving) if self.mutates else self._added(to, stationary, moving)

    def _added(self, to: str, stationary: str, moving: str) -> str:
        return f"{to} += {self.nisa['nc_matmul']}({stationary}, {moving})"

    def largest(self, to: str, data: str) -> str:
        """Return the largest number of each row."""
        if self.mutates:
            return f"{self.nisa['tensor_reduce']}({to}, {self.nl['maximum']}, {data}, axis=1)"
        return f"{to} = {self.nl['max']}({data}, axis=[1], keepdims=True)"

    def pair(self, to: str, op: str, left: str, right: str) -> str:
        if self.mutates:
            return f"{self.nisa['tensor_tensor']}({to}, {left}, {right}, {self.nl[op]})"
        return f"{to} = {self.nl[op]}({left}, {right})"

    def exp(self, to: str, data: str, dtype: str | None) -> str:
        if self.mutates:
            return f"{self.nisa['activation']}({to}, {self.nl['exp']}, {data})"
        return f"{to} = {self.nl['exp']}({data}{f', dtype={dtype}' if dtype else ''})"

    def reciprocal(self, to: str, data: str) -> str:
        if self.mutates:
            return f"{self.nisa['reciprocal']}({to}, {data})"
        return f"{to} = {self.nl['reciprocal']}({data})"
