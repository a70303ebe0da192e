# ruff: noqa: E501 (kernels as they are written)
"""Cases of the rules that move loads, transposes and stores out of loops, or block a loop: (rule, name, before, after)."""

from __future__ import annotations

CASES: list[tuple[str, str, str, str | None]] = [
    (
        "nki-keep-transposed",
        "loads and transposes before the loop",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i in nl.affine_range(2):
        for j in nl.affine_range(2):
            total = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(8):
                # both tiles
                lhs = nl.load(x[i * 128 + rows, k * 128 + inner])
                rhs = nl.load(w[rows, j * 512 + columns])
                total += nl.matmul(lhs, rhs)
            result = nl.copy(total, dtype=out.dtype)
            nl.store(out[i * 128 + rows, j * 512 + columns], value=result)
""",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i in nl.affine_range(2):
        lhs_transposed = nl.ndarray((8, nl.par_dim(128), 128), dtype=x.dtype, buffer=nl.sbuf)
        for k in nl.affine_range(8):
            lhs = nl.load(x[i * 128 + rows, k * 128 + inner])
            lhs_transposed[k, nl.arange(128)[:, None], nl.arange(128)[None, :]] = nl.copy(nl.transpose(lhs))
        for j in nl.affine_range(2):
            total = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(8):
                # both tiles
                rhs = nl.load(w[rows, j * 512 + columns])
                total += nl.matmul(lhs_transposed[k, nl.arange(128)[:, None], nl.arange(128)[None, :]], rhs, transpose_x=True)
            result = nl.copy(total, dtype=out.dtype)
            nl.store(out[i * 128 + rows, j * 512 + columns], value=result)
""",
    ),
    (
        "nki-keep-transposed",
        "transposes the parts of a computed tile",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    whole = nl.arange(1024)[None, :]
    for i in nl.affine_range(2):
        row = nl.load(x[i * 128 + rows, whole])
        scaled = nl.multiply(row, 0.5)
        for j in nl.affine_range(2):
            total = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(8):
                rhs = nl.load(w[rows, j * 512 + columns])
                total += nl.matmul(scaled[rows, k * 128 + inner], rhs)
            nl.store(out[i * 128 + rows, j * 512 + columns], value=nl.copy(total))
""",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    whole = nl.arange(1024)[None, :]
    for i in nl.affine_range(2):
        row = nl.load(x[i * 128 + rows, whole])
        scaled = nl.multiply(row, 0.5)
        scaled_transposed = nl.ndarray((8, nl.par_dim(128), 128), dtype=scaled.dtype, buffer=nl.sbuf)
        for k in nl.affine_range(8):
            scaled_transposed[k, nl.arange(128)[:, None], nl.arange(128)[None, :]] = nl.copy(nl.transpose(scaled[rows, k * 128 + inner]))
        for j in nl.affine_range(2):
            total = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(8):
                rhs = nl.load(w[rows, j * 512 + columns])
                total += nl.matmul(scaled_transposed[k, nl.arange(128)[:, None], nl.arange(128)[None, :]], rhs, transpose_x=True)
            nl.store(out[i * 128 + rows, j * 512 + columns], value=nl.copy(total))
""",
    ),
    (
        "nki-keep-transposed",
        "leaves an operand that is transposed already",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i in nl.affine_range(2):
        for j in nl.affine_range(2):
            total = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(8):
                # both tiles
                lhs = nl.load(x[i * 128 + rows, k * 128 + inner])
                rhs = nl.load(w[rows, j * 512 + columns])
                total += nl.matmul(lhs, rhs, transpose_x=True)
            result = nl.copy(total, dtype=out.dtype)
            nl.store(out[i * 128 + rows, j * 512 + columns], value=result)
""",
        None,
    ),
    (
        "nki-keep-computed",
        "keeps what is loaded and transposed",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i in nl.affine_range(2):
        for k in nl.affine_range(8):
            part = nl.load(w[rows, k * 128 + inner])
            turned = nl.copy(nl.transpose(part))
            mine = nl.load(x[i * 128 + rows, k * 128 + inner])
            nl.store(out[i * 128 + rows, k * 128 + inner], value=nl.add(mine, turned))
""",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    turned_kept = nl.ndarray((8, nl.par_dim(128), 128), dtype=w.dtype, buffer=nl.sbuf)
    for k in nl.affine_range(8):
        part = nl.load(w[rows, k * 128 + inner])
        turned_kept[k, nl.arange(128)[:, None], nl.arange(128)[None, :]] = nl.copy(nl.transpose(part))
    for i in nl.affine_range(2):
        for k in nl.affine_range(8):
            mine = nl.load(x[i * 128 + rows, k * 128 + inner])
            nl.store(out[i * 128 + rows, k * 128 + inner], value=nl.add(mine, turned_kept[k, nl.arange(128)[:, None], nl.arange(128)[None, :]]))
""",
    ),
    (
        "nki-keep-computed",
        "leaves what every iteration loads anew",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128 + rows, columns])
        nl.store(out[i * 128 + rows, columns], value=nl.exp(tile))
""",
        None,
    ),
    (
        "nki-block-loop",
        "loads a tile for two rows of tiles at once",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i in nl.affine_range(2):
        for j in nl.affine_range(2):
            total = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(8):
                # both tiles
                lhs = nl.load(x[i * 128 + rows, k * 128 + inner])
                rhs = nl.load(w[rows, j * 512 + columns])
                total += nl.matmul(lhs, rhs)
            result = nl.copy(total, dtype=out.dtype)
            nl.store(out[i * 128 + rows, j * 512 + columns], value=result)
""",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i_outer in nl.affine_range(1):
        for j in nl.affine_range(2):
            total = nl.zeros((2, nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(8):
                rhs = nl.load(w[rows, j * 512 + columns])
                for i_inner in nl.affine_range(2):
                    i = i_outer * 2 + i_inner
                    # both tiles
                    lhs = nl.load(x[i * 128 + rows, k * 128 + inner])
                    total[i_inner, nl.arange(128)[:, None], nl.arange(512)[None, :]] += nl.matmul(lhs, rhs)
            for i_inner in nl.affine_range(2):
                i = i_outer * 2 + i_inner
                result = nl.copy(total[i_inner, nl.arange(128)[:, None], nl.arange(512)[None, :]], dtype=out.dtype)
                nl.store(out[i * 128 + rows, j * 512 + columns], value=result)
""",
    ),
    (
        "nki-block-loop",
        "goes on one by one where the count does not divide",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i in nl.affine_range(x.shape[0] // 128):
        for j in nl.affine_range(2):
            total = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(8):
                # both tiles
                lhs = nl.load(x[i * 128 + rows, k * 128 + inner])
                rhs = nl.load(w[rows, j * 512 + columns])
                total += nl.matmul(lhs, rhs)
            result = nl.copy(total, dtype=out.dtype)
            nl.store(out[i * 128 + rows, j * 512 + columns], value=result)
""",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    i_block = 2 if (x.shape[0] // 128) % 2 == 0 else 1
    for i_outer in nl.affine_range((x.shape[0] // 128) // i_block):
        for j in nl.affine_range(2):
            total = nl.zeros((i_block, nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(8):
                rhs = nl.load(w[rows, j * 512 + columns])
                for i_inner in nl.affine_range(i_block):
                    i = i_outer * i_block + i_inner
                    # both tiles
                    lhs = nl.load(x[i * 128 + rows, k * 128 + inner])
                    total[i_inner, nl.arange(128)[:, None], nl.arange(512)[None, :]] += nl.matmul(lhs, rhs)
            for i_inner in nl.affine_range(i_block):
                i = i_outer * i_block + i_inner
                result = nl.copy(total[i_inner, nl.arange(128)[:, None], nl.arange(512)[None, :]], dtype=out.dtype)
                nl.store(out[i * 128 + rows, j * 512 + columns], value=result)
""",
    ),
    (
        "nki-block-loop",
        "keeps what was computed for each row of tiles",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    whole = nl.arange(1024)[None, :]
    for i in nl.affine_range(2):
        row = nl.load(x[i * 128 + rows, whole])
        scaled = nl.multiply(row, 0.5)
        for j in nl.affine_range(2):
            total = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(8):
                rhs = nl.load(w[rows, j * 512 + columns])
                total += nl.matmul(scaled[rows, k * 128 + inner], rhs)
            nl.store(out[i * 128 + rows, j * 512 + columns], value=nl.copy(total))
""",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    whole = nl.arange(1024)[None, :]
    for i_outer in nl.affine_range(1):
        scaled = nl.ndarray((2, nl.par_dim(128), 1024), dtype=x.dtype, buffer=nl.sbuf)
        for i_inner in nl.affine_range(2):
            i = i_outer * 2 + i_inner
            row = nl.load(x[i * 128 + rows, whole])
            scaled[i_inner, nl.arange(128)[:, None], nl.arange(1024)[None, :]] = nl.multiply(row, 0.5)
        for j in nl.affine_range(2):
            total = nl.zeros((2, nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(8):
                rhs = nl.load(w[rows, j * 512 + columns])
                for i_inner in nl.affine_range(2):
                    total[i_inner, nl.arange(128)[:, None], nl.arange(512)[None, :]] += nl.matmul(scaled[i_inner, rows, k * 128 + inner], rhs)
            for i_inner in nl.affine_range(2):
                i = i_outer * 2 + i_inner
                nl.store(out[i * 128 + rows, j * 512 + columns], value=nl.copy(total[i_inner, nl.arange(128)[:, None], nl.arange(512)[None, :]]))
""",
    ),
    (
        "nki-block-loop",
        "leaves a loop whose order counts and one that shares nothing",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i in nl.sequential_range(2):
        for j in nl.sequential_range(2):
            total = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.sequential_range(8):
                # both tiles
                lhs = nl.load(x[i * 128 + rows, k * 128 + inner])
                rhs = nl.load(w[rows, j * 512 + columns])
                total += nl.matmul(lhs, rhs)
            result = nl.copy(total, dtype=out.dtype)
            nl.store(out[i * 128 + rows, j * 512 + columns], value=result)
""",
        None,
    ),
    (
        "nki-block-loop",
        "leaves a loop that has nothing to share",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128 + rows, columns])
        nl.store(out[i * 128 + rows, columns], value=nl.exp(tile))
""",
        None,
    ),
    (
        "nki-wider-loads",
        "loads whole rows",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i in nl.affine_range(2):
        for j in nl.affine_range(2):
            tile = nl.load(x[i * 128 + rows, j * 512 + columns])
            nl.store(out[i * 128 + rows, j * 512 + columns], value=nl.exp(tile))
""",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i in nl.affine_range(2):
        tile_rows = nl.load(x[i * 128 + rows, nl.arange(512 * 2)[None, :]])
        for j in nl.affine_range(2):
            nl.store(out[i * 128 + rows, j * 512 + columns], value=nl.exp(tile_rows[nl.arange(128)[:, None], j * 512 + nl.arange(512)[None, :]]))
""",
    ),
    (
        "nki-wider-loads",
        "leaves a load under a mask",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i in nl.affine_range(2):
        for j in nl.affine_range(2):
            tile = nl.load(x[i * 128 + rows, j * 512 + columns], mask=rows < 100)
            nl.store(out[i * 128 + rows, j * 512 + columns], value=tile, mask=rows < 100)
""",
        None,
    ),
    (
        "nki-wider-stores",
        "stores whole rows",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i in nl.affine_range(2):
        for j in nl.affine_range(2):
            tile = nl.load(x[i * 128 + rows, j * 512 + columns])
            nl.store(out[i * 128 + rows, j * 512 + columns], value=nl.exp(tile))
""",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i in nl.affine_range(2):
        out_rows = nl.ndarray((nl.par_dim(128), 512 * 2), dtype=out.dtype, buffer=nl.sbuf)
        for j in nl.affine_range(2):
            tile = nl.load(x[i * 128 + rows, j * 512 + columns])
            out_rows[nl.arange(128)[:, None], j * 512 + nl.arange(512)[None, :]] = nl.exp(tile)
        nl.store(out[i * 128 + rows, nl.arange(512 * 2)[None, :]], value=out_rows)
""",
    ),
    (
        "nki-wider-stores",
        "lets the last instruction write into the rows",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i in nl.affine_range(2):
        for j in nl.affine_range(2):
            tile = nl.load(x[i * 128 + rows, j * 512 + columns])
            result = nl.exp(tile)
            nl.store(out[i * 128 + rows, j * 512 + columns], value=result)
""",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i in nl.affine_range(2):
        out_rows = nl.ndarray((nl.par_dim(128), 512 * 2), dtype=out.dtype, buffer=nl.sbuf)
        for j in nl.affine_range(2):
            tile = nl.load(x[i * 128 + rows, j * 512 + columns])
            out_rows[nl.arange(128)[:, None], j * 512 + nl.arange(512)[None, :]] = nl.exp(tile)
        nl.store(out[i * 128 + rows, nl.arange(512 * 2)[None, :]], value=out_rows)
""",
    ),
    (
        "nki-wider-stores",
        "leaves a tensor that the loop reads again",
        """
    rows = nl.arange(128)[:, None]
    inner = nl.arange(128)[None, :]
    columns = nl.arange(512)[None, :]
    for i in nl.affine_range(2):
        for j in nl.affine_range(2):
            tile = nl.load(x[i * 128 + rows, j * 512 + columns])
            nl.store(out[i * 128 + rows, j * 512 + columns], value=tile)
            again = nl.load(out[i * 128 + rows, j * 512 + columns])
            nl.store(x[i * 128 + rows, j * 512 + columns], value=again)
""",
        None,
    ),
]
