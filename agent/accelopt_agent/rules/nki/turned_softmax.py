"""Compute the weights of an attention in the layout that their product needs.

Scores with keys down and queries across are the product with its operands swapped: TensorE makes them as fast, and
512 queries at a time. Their powers are the first operand's other side of the second product as they are, so nothing is
transposed. What a row of scores has to be shifted by, its maximum, is found by a product in the old layout whose values
go no further. It has the operands' own type: a shift from bfloat16 operands is off by up to 2^-8 of a score, and the
power of what is left overflows for large ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.constants import factor, number_of_text
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.nki.independence import independent
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiKernel
from accelopt_agent.rules.analysis.nki.softmax_product import Operand, SoftmaxProduct, softmax_product
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_profiling.nki.operations.table import operations
from accelopt_profiling.source_text import source_lines

#: Columns that TensorE passes over at once.
_WIDEST = 512


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    for statement in kernel.flow.statements:
        loop = statement.node
        if not isinstance(loop, cst.For) or not _in_any_order(kernel, loop):
            continue
        product = softmax_product(kernel, loop)
        if product is not None and (edit := _Turning(kernel, product).edit()) is not None:
            summary = f"Compute the weights of {product.mixed} transposed instead of transposing them."
            yield Rewrite((edit,), summary)


def _in_any_order(kernel: NkiKernel, loop: cst.For) -> bool:
    if kernel.dialect.mutates:
        return independent(kernel, loop)
    return isinstance(loop.iter, cst.Call) and kernel.path(loop.iter.func) == f"{NL}.affine_range"


class _Turning:
    """Writes the loop anew."""

    def __init__(self, kernel: NkiKernel, product: SoftmaxProduct) -> None:
        self.kernel, self.source, self.found = kernel, kernel.source, product
        self.write = TileWriter.of(kernel)
        self.lines: list[str] = []
        self.depth = 0

    def edit(self) -> ByteEdit | None:
        product, write, kernel = self.found, self.write, self.kernel
        rows = number_of_text(kernel.flow, product.query.shape.rows)
        if write is None or not isinstance(rows, int) or not 0 < rows <= 128:
            return None
        if any(kernel.flow.occurrences(name) for name in _NAMES):
            return None
        self.most = _WIDEST // rows
        self.keep_keys_and_values()
        self.queries()
        loop = product.query.loop
        start, end = self.source.line_start(self.source.start(loop)), self.source.block_end(loop)
        old, indent = self.source.data[start:end].decode(), self.source.indent(loop)
        if '"""' in old or "'''" in old:
            return None  # another indent would change the string
        written = {line[line.index("#") :] for line in self.lines if "#" in line}
        comments = [c for c in self.source.comments_in(start, end) if not any(c in line for line in written)]
        lines = [*comments, *self.lines]
        return ByteEdit(start, end, "".join(f"{indent}{line}\n" for line in lines))

    def add(self, *lines: str) -> None:
        self.lines += [self.source.step * self.depth + line for line in lines]

    def add_as_written(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            self.add(*source_lines(self.source.with_comment(statement.node)))

    def loop_over(self, operand: Operand) -> None:
        self.add(
            self.source.with_comment(
                operand.loop, f"for {operand.variable} in {self.source.code(operand.loop.iter)}:"
            )
        )
        self.depth += 1

    def count_to(self, variable: str, count: str) -> None:
        loop = self.found.query.loop
        assert isinstance(loop.iter, cst.Call)
        self.add(f"for {variable} in {self.source.code(loop.iter.func)}({count}):")
        self.depth += 1

    def keep_keys_and_values(self) -> None:
        """Write the loops that make all keys and values, which are kept side by side in SBUF."""
        write, keys, values = self.write, self.found.keys, self.found.values
        assert write is not None
        self.all_keys = f"{factor(keys.count)} * {factor(keys.shape.columns)}"
        self.add(write.new("turned_keys", keys.shape.rows, columns=self.all_keys, dtype=keys.shape.dtype))
        self.loop_over(keys)
        self.add_as_written(keys.statements)
        place = (keys.shape.rows, f"{keys.variable} * {factor(keys.shape.columns)}", keys.shape.columns)
        self.add(write.copy(write.part("turned_keys", *place), keys.code))
        self.depth -= 1
        width = f"{factor(values.count)} * {factor(values.shape.columns)}"
        self.add(write.new("kept_values", values.shape.rows, width, values.shape.dtype))
        self.loop_over(values)
        self.add_as_written(values.statements)
        self.add(write.copy(self.value_tile(), values.code))
        self.depth -= 1

    def value_tile(self) -> str:
        values = self.found.values
        assert self.write is not None
        columns = values.shape.columns
        return self.write.part(
            "kept_values", values.shape.rows, f"{values.variable} * {factor(columns)}", columns
        )

    def queries(self) -> None:
        """Write the loop over several tiles of queries at a time."""
        query, write = self.found.query, self.write
        assert write is not None
        self.tiles = _largest_divisor(query.count, self.most)
        self.add(f"query_tiles = {self.tiles}")
        self.add(f"key_columns = {_widest(self.all_keys, self.found.keys.shape.columns)}")
        self.add(*write.filled("ones_row", "1", self.found.values.shape.rows, "1.0"))
        self.add(*write.filled("ones_column", self.found.values.shape.rows, "1", "1.0"))
        self.count_to("query_block", f"{factor(query.count)} // query_tiles")
        self.width = f"query_tiles * {factor(query.shape.rows)}"
        self.add(write.new("turned_query", query.shape.columns, self.width, query.shape.dtype))
        self.add(write.new("shift", "1", self.width, write.float32))
        self.count_to("query_part", "query_tiles")
        self.shift_of_a_tile()
        self.depth -= 1
        self.mix()
        self.count_to("query_part", "query_tiles")
        self.result_of_a_tile()
        self.depth -= 2

    def query_part(self, name: str, rows: str) -> str:
        width = self.found.query.shape.rows
        assert self.write is not None
        return self.write.part(name, rows, f"query_part * {factor(width)}", width)

    def shift_of_a_tile(self) -> None:
        """Write what turns a tile of queries, and finds the largest score of each."""
        query, write = self.found.query, self.write
        assert write is not None
        rows, features = query.shape.rows, query.shape.columns
        self.add(f"{query.variable} = query_block * query_tiles + query_part")
        self.add_as_written(query.statements)
        turned, code = self.query_part("turned_query", features), query.code
        if query.turned:
            self.add(*write.tile("query_psum", features, rows, query.shape.dtype, write.psum))
            self.add(write.transpose("query_psum", code))
            code = "query_psum"
        self.add(
            write.copy(turned, code)
            if self.found.scale is None
            else write.scale(turned, code, self.found.scale)
        )
        self.add(write.new("largest_scores", rows, f"{factor(self.all_keys)} // key_columns", write.float32))
        self.count_to("key_block", f"{factor(self.all_keys)} // key_columns")
        self.add(*write.tile("row_scores", rows, "key_columns", write.float32, write.psum))
        some_keys = write.part("turned_keys", features, "key_block * key_columns", "key_columns")
        self.add(write.product("row_scores", turned, some_keys))
        self.add(write.largest(write.part("largest_scores", rows, "key_block", "1"), "row_scores"))
        self.depth -= 1
        self.add(*write.tile("largest_score", rows, "1", write.float32))
        self.add(write.largest("largest_score", "largest_scores"))
        self.add(*write.tile("shift_psum", "1", rows, write.float32, write.psum))
        self.add(write.transpose("shift_psum", "largest_score"))
        self.add(write.copy(self.query_part("shift", "1"), "shift_psum"))

    def mix(self) -> None:
        """Write the loop that multiplies the powers with the values, and adds them up."""
        product, write = self.found, self.write
        assert write is not None
        keys, values = product.values.shape.rows, product.values
        self.add(*write.tile("shift_rows_psum", keys, self.width, write.float32, write.psum))
        self.add(write.product("shift_rows_psum", "ones_row", "shift"))
        self.add(*write.tile("shift_rows", keys, self.width, write.float32))
        self.add(write.copy("shift_rows", "shift_rows_psum"))
        self.add(*write.sum_in_psum("turned_mixed", values.shape.columns, self.width))
        # VectorE adds a tile in PSUM to one in SBUF twice as fast as two in SBUF.
        self.add(*write.filled("powers_sum", keys, self.width, "0.0", write.psum))
        self.add(f"for {values.variable} in {write.sequential}({values.count}):")
        self.depth += 1
        some_keys = write.part(
            "turned_keys", product.keys.shape.rows, f"{values.variable} * {factor(keys)}", keys
        )
        self.add(*write.tile("turned_scores", keys, self.width, write.float32, write.psum))
        self.add(write.product("turned_scores", some_keys, "turned_query"))
        self.add(*write.tile("shifted_scores", keys, self.width, write.float32))
        self.add(write.pair("shifted_scores", "subtract", "turned_scores", "shift_rows"))
        self.add(*write.tile("turned_powers", keys, self.width, product.weights.dtype))
        self.add(write.exp("turned_powers", "shifted_scores", product.weights.dtype))
        self.add(write.product_added("turned_mixed", self.value_tile(), "turned_powers"))
        whole = write.part("powers_sum", keys, "0", self.width)
        self.add(write.pair(whole, "add", whole, "turned_powers"))
        self.depth -= 1
        self.add(*write.tile("mixed_rows", values.shape.columns, self.width, write.float32))
        self.add(write.copy("mixed_rows", "turned_mixed"))
        self.add(*write.tile("powers_rows", keys, self.width, write.float32))
        self.add(write.copy("powers_rows", "powers_sum"))
        self.add(*write.tile("total_psum", "1", self.width, write.float32, write.psum))
        self.add(write.product("total_psum", "ones_column", "powers_rows"))
        self.add(*write.tile("total_row", "1", self.width, write.float32))
        self.add(write.copy("total_row", "total_psum"))

    def result_of_a_tile(self) -> None:
        """Write what turns the results back, and the statements that follow the product in the old loop."""
        product, write = self.found, self.write
        assert write is not None
        rows, columns = product.query.shape.rows, product.values.shape.columns
        self.add(f"{product.query.variable} = query_block * query_tiles + query_part")
        self.add_as_written(self.needed_again())
        self.add(*write.tile("total_column_psum", rows, "1", write.float32, write.psum))
        self.add(write.transpose("total_column_psum", self.query_part("total_row", "1")))
        self.add(*write.tile(product.total, rows, "1", write.float32))
        self.add(write.copy(product.total, "total_column_psum"))
        self.add(*write.tile("mixed_psum", rows, columns, write.float32, write.psum))
        self.add(write.transpose("mixed_psum", self.query_part("mixed_rows", columns)))
        self.add(*write.tile(product.mixed, rows, columns, write.float32))
        if product.normalised:
            self.add(*write.tile("inverse_total", rows, "1", write.float32))
            self.add(write.reciprocal("inverse_total", product.total))
            self.add(write.by_column(product.mixed, "mixed_psum", "inverse_total"))
        else:
            self.add(write.copy(product.mixed, "mixed_psum"))
        self.add_as_written(product.after)

    def needed_again(self) -> list[Statement]:
        """Return the statements before the product whose results the ones after it read."""
        read: set[str] = set().union(*(s.reads for s in self.found.after))
        statements: list[Statement] = []
        for statement in reversed(self.found.query.statements):
            if statement.writes & read:
                statements.insert(0, statement)
                read |= statement.reads
        return statements


#: The names that the new loop has for its own tiles and numbers.
_NAMES = (
    "turned_keys", "kept_values", "query_tiles", "key_columns", "ones_row", "ones_column", "query_block",
    "turned_query", "shift", "query_part", "query_psum", "largest_scores", "key_block", "row_scores",
    "largest_score", "shift_psum", "shift_rows_psum", "shift_rows", "turned_mixed", "powers_sum", "powers_rows",
    "turned_scores", "shifted_scores", "turned_powers", "mixed_rows", "total_psum", "total_row", "total_column_psum",
    "mixed_psum", "inverse_total",
)  # fmt: skip


def _largest_divisor(count: str, most: int) -> str:
    """Return the largest power of two up to ``most`` that divides ``count``, as code."""
    text, size = "1", 2
    while size <= most:
        text, size = f"{size} if {factor(count)} % {size} == 0 else {text}", size * 2
    return text


def _widest(columns: str, otherwise: str) -> str:
    return f"{_WIDEST} if {factor(columns)} % {_WIDEST} == 0 else {otherwise}"


_WORDS = (
    "ndarray", "par_dim", "arange", "ds", "sbuf", "psum", "float32", "zeros", "full", "copy", "multiply",
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
        return [self.new(name, rows, columns=columns, dtype=dtype, space=space)] if self.mutates else []

    def filled(self, name: str, rows: str, columns: str, value: str, space: str | None = None) -> list[str]:
        if self.mutates:
            allocation = self.new(name, rows, columns=columns, dtype=self.float32, space=space)
            return [allocation, f"{self.nisa['memset']}({name}, {value})"]
        options = f"dtype={self.float32}, buffer={space or self.nl['sbuf']}"
        return [f"{name} = {self.nl['full']}(({rows}, {columns}), {value}, {options})"]

    def sum_in_psum(self, name: str, rows: str, columns: str) -> list[str]:
        """Return what makes a tile that products are added to."""
        if self.mutates:
            return [self.new(name, rows, columns=columns, dtype=self.float32, space=self.psum)]
        options = f"dtype={self.float32}, buffer={self.psum}"
        return [f"{name} = {self.nl['zeros']}(({rows}, {columns}), {options})"]

    def part(self, name: str, rows: str, start: str, columns: str) -> str:
        """Return columns of a tile, as an operand or a destination."""
        if self.mutates:
            return f"{name}[:, {self.nl['ds']}({start}, {columns})]"
        arange = self.nl["arange"]
        return f"{name}[{arange}({rows})[:, None], {start} + {arange}({columns})[None, :]]"

    def copy(self, to: str, data: str) -> str:
        return (
            f"{self.nisa['tensor_copy']}({to}, {data})"
            if self.mutates
            else f"{to} = {self.nl['copy']}({data})"
        )

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
