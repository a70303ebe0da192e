"""nki.language: new tensors, NkiTensor and its views, types, buffers and sizes."""

from __future__ import annotations

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import WHOLE, Array, PageRule, X, Y, new

ONE = "nl.NkiTensor"
DTYPES = (
    "bool_", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32", "bfloat16", "tfloat32",
    "float8_e4m3", "float8_e5m2", "float8_e4m3fn", "float8_e8m0fnu", "float8_e5m2_x4", "float8_e4m3fn_x4",
    "float4_e2m1fn_x4",
)  # fmt: skip
#: Which of nl.sbuf, nl.psum, nl.hbm, nl.private_hbm and nl.shared_hbm are meant.
BUFFERS = {"sbuf": "10000", "psum": "01000", "hbm": "00111", "on_chip": "11000"}
CUBE = X.reshape(32, 4, 16)
ROWS = np.arange(4 * 32 * 8, dtype=np.float32).reshape(4, 32, 8)
PICKED = np.array([[3], [0], [2], [2]], np.int32)


def _stated(function: str, text: str, statements: str, *inputs: Array, core: str = "trn2") -> PageRule:
    """Return a rule whose statements assert what the page states, before they give their first input back."""
    return PageRule(function, text, f"{statements}\no = x", inputs[0], inputs, core)


def _forbidden(
    text: str, statements: str, *inputs: Array, function: str = ONE, core: str = "trn2"
) -> PageRule:
    return PageRule(function, text, f"{statements}\no = x", None, inputs or (X,), core)


def _view(text: str, view: str, expected: Array, *inputs: Array) -> PageRule:
    """Return a rule of a view, whose values are those of a copy of it."""
    return PageRule(
        ONE, text, f"v = {view}\nassert v.shape == {expected.shape}\no = nl.copy(v)", expected, inputs
    )


def _creation() -> list[PageRule]:
    rules = []
    for name, at, value in (("zeros", "", 0), ("ones", "", 1), ("full", "2.5, ", 2.5)):
        call = f"nl.{name}"
        rules += [
            PageRule(call, "in SBUF", f"o = {call}((32, 64), {at}dtype=nl.float32)\nassert o.buffer == nl.sbuf",
                 np.full((32, 64), value, np.float32), (X,)),
            PageRule(call, "in PSUM", f"p = {call}((32, 64), {at}dtype=nl.float32, buffer=nl.psum)\n"
                 "assert p.buffer == nl.psum\no = nl.copy(p)", np.full((32, 64), value, np.float32), (X,)),
            PageRule(call, "in HBM, with a name", f"r = {call}((32, 64), {at}nl.float32, nl.shared_hbm, name='r')\n"
                 "assert r.name == 'r'\nreturn r", np.full((32, 64), value, np.float32), (X,)),
            PageRule(call, "needs a type", f"o = {call}((32, 64), {at.rstrip(', ')})", None, (X,)),
            PageRule(call, "no string for a buffer", f"o = {call}((32, 64), {at}nl.float32, buffer='sbuf')", None,
                 (X,)),
        ]  # fmt: skip
    rules.append(
        PageRule(
            "nl.full", "no fraction of integers", "o = nl.full((32, 8), 2.5, dtype=nl.int32)", None, (X,)
        )
    )
    out = f"{new('r', buffer='{}')}\nnisa.dma_copy(r, x)\nreturn r"
    return [
        *rules,
        PageRule("nl.zeros_like", "shape and type", "o = nl.zeros_like(x)\nassert o.dtype == nl.int32",
             np.zeros_like(WHOLE), (WHOLE,)),
        _stated("nl.zeros_like", "in SBUF unless told", f"{new('p', buffer='psum')}\nz = nl.zeros_like(p)\n"
             "assert z.buffer == nl.sbuf", X),
        PageRule("nl.zeros_like", "in another type", "o = nl.zeros_like(x, dtype=nl.float16)\n"
             "assert o.dtype == nl.float16", np.zeros(X.shape, np.float16), (X,)),
        PageRule("nl.empty_like", "shape, type and buffer", f"{new('p', buffer='psum')}\ne = nl.empty_like(p)\n"
             "assert e.buffer == nl.psum and e.shape == x.shape and e.dtype == nl.float32\n"
             "nisa.tensor_copy(e, x)\no = nl.copy(e)", X, (X,)),
        PageRule("nl.empty_like", "told otherwise",
             "o = nl.empty_like(x, dtype=nl.float16, buffer=nl.sbuf, name='e')\nassert o.name == 'e'\n"
             "nisa.tensor_copy(o, x)", X.astype(np.float16), (X,)),
        PageRule("nl.ndarray", "in SBUF unless told", "o = nl.ndarray((32, 64), nl.float32)\n"
             "assert o.buffer == nl.sbuf\nnisa.tensor_copy(o, x)", X, (X,)),
        PageRule("nl.ndarray", "an output lies in shared HBM", out.format("shared_hbm"), X, (X,)),
        PageRule("nl.ndarray", "no output in nl.hbm (0.3)", out.format("hbm"), None, (X,)),
        PageRule("nl.ndarray", "no output in private HBM (0.3)", out.format("private_hbm"), None, (X,)),
        PageRule("nl.ndarray", "no string for a buffer (0.3)", "o = nl.ndarray((32, 64), nl.float32, buffer='sbuf')",
             None, (X,)),
        PageRule("nl.ndarray", "128 partitions", "o = nl.ndarray((129, 4), nl.float32)\nnisa.memset(o, 0.0)", None,
             (X,)),
        PageRule("nl.ndarray", "at an address", "o = nl.ndarray((32, 64), nl.float32, nl.sbuf, address=(0, 1024))\n"
             "nisa.tensor_copy(o, x)", X, (X,)),
        PageRule("nl.ndarray", "an address has two numbers",
             "o = nl.ndarray((32, 64), nl.float32, nl.sbuf, address=(0, 1, 2))\nnisa.tensor_copy(o, x)", None, (X,)),
        PageRule("nl.ndarray", "addresses end with the memory",
             "o = nl.ndarray((32, 64), nl.float32, nl.sbuf, address=(0, 1 << 20))\nnisa.tensor_copy(o, x)", None, (X,)),
        PageRule("nl.ndarray", "unwritten memory has no value", "o = nl.ndarray((32, 64), nl.float32)", None, (X,)),
        PageRule("nl.shared_constant", "of an array, in shared HBM",
             "import numpy as np\nc = nl.shared_constant(np.eye(32, dtype=np.float32))\no = nl.load(c)",
             np.eye(32, dtype=np.float32), (X,)),
        *(PageRule("nl.shared_constant", f"of {name}",
             f"import numpy as np\nc = nl.shared_constant(np.ones((4, 4), np.{name}))\nassert c.dtype == nl.{name}\n"
             "o = nl.load(c)", np.ones((4, 4), name), (X,))
          for name in ("float16", "int32", "int16", "int8", "uint32", "uint16", "uint8")),
        *(PageRule("nl.shared_constant", f"not of {name}",
             f"import numpy as np\no = nl.load(nl.shared_constant(np.ones((4, 4), np.{name})))", None, (X,))
          for name in ("float64", "int64", "complex64")),
        PageRule("nl.shared_identity_matrix", "in SBUF", "o = nl.shared_identity_matrix(n=32, dtype=nl.float32)\n"
             "assert o.buffer == nl.sbuf", np.eye(32, dtype=np.float32), (X,)),
        PageRule("nl.shared_identity_matrix", "of uint8", "o = nl.shared_identity_matrix(8)\n"
             "assert o.dtype == nl.uint8", np.eye(8, dtype=np.uint8), (X,)),
        PageRule("nl.shared_identity_matrix", "into dst", f"{new('o', like='(32, 32)')}\n"
             "nl.shared_identity_matrix(32, nl.float32, dst=o)", np.eye(32, dtype=np.float32), (X,)),
        PageRule("nl.shared_identity_matrix", "128 partitions", "o = nl.shared_identity_matrix(129)", None, (X,)),
    ]  # fmt: skip


def _attributes() -> list[PageRule]:
    t = "t = nl.ndarray((64, 64, 32), dtype=nl.float32, buffer=nl.sbuf)\n"
    return [
        _stated(ONE, "what it is", "t = nl.ndarray((128, 64), nl.float32, nl.sbuf)\n"
             "assert t.shape == (128, 64) and t.strides == (64, 1) and t.offset == 0 and t.dtype == nl.float32\n"
             "assert t.buffer == nl.sbuf and t.ndim == 2 and t.size == 128 * 64 and t.name == ''", X),
        _stated(ONE, "its name", "assert nl.ndarray((128, 64), nl.float32, nl.sbuf, name='w').name == 'w'", X),
        _stated(ONE, "offset and strides of a view",
             "v = x[0:16, 8:24:2]\nassert v.offset == 8 and v.strides == (64, 2) and v.get_pattern() == [[64, 16], "
             "[2, 8]]", X),
        _stated(ONE, "shapes of indices on the chip",
             f"{t}assert t[0, :, :].shape == (1, 64, 32) and t[:, :, 0].shape == (64, 64)\n"
             "assert t[0, 0, 10].shape == (1, 1) and t[:, 0].shape == (64, 32) and t[:, 0, 10].shape == (64, 1)\n"
             "assert t[0:64, 0, 0:8].shape == (64, 8) and t[:, :, ::2].shape == (64, 64, 16)\n"
             "assert t[...].shape == (64, 64, 32) and t[0, ..., :].shape == (1, 64, 32)\n"
             "assert t[0, ...][:, 0:32, :].shape == (1, 32, 32)", X),
        _stated(ONE, "indices of HBM drop dimensions",
             "h = nl.ndarray((4, 128, 32), nl.float32, nl.shared_hbm)\n"
             "assert h[0, :, :].shape == (128, 32) and h[0].shape == (128, 32) and h[0, 1].shape == (32,)\n"
             "assert h[0, 1, 2].shape == (1,)", X),
        _stated(ONE, "is_contiguous",
             "assert x.is_contiguous() and not x[:, ::2].is_contiguous() and x[0:8].is_contiguous()\n"
             "assert not x.reshape((32, 8, 8)).permute((0, 2, 1)).is_contiguous()", X),
        _stated(ONE, "is_indirect", "i = nl.ndarray((4, 1), nl.int32)\nnisa.memset(i, 0)\n"
             "assert not a.is_indirect() and a.vector_select(0, i).is_indirect()", X),
        _stated("nl.MemoryRegion", "its members",
             "m = nl.MemoryRegion\nassert m.sbuf == nl.sbuf and m.psum == nl.psum and m.shared_hbm == nl.shared_hbm\n"
             "assert m.private_hbm == nl.private_hbm and nl.hbm == nl.private_hbm and nl.hbm != nl.shared_hbm", X),
        *(_stated(f"nl.is_{name}", "of each buffer", f"assert [nl.is_{name}(b) for b in (nl.sbuf, nl.psum, nl.hbm, "
             f"nl.private_hbm, nl.shared_hbm)] == {[w == '1' for w in where]}", X) for name, where in BUFFERS.items()),
        *(_stated(f"nl.{name}", "is a type", f"t = nl.ndarray((32, 8), dtype=nl.{name}, buffer=nl.sbuf)\n"
             f"assert t.dtype == nl.{name} and t.shape == (32, 8)", X, core="trn3") for name in DTYPES),
        _stated("nl.tile_size", "sizes of every core",
             "t = nl.tile_size\nassert t.pmax == 128 and t.psum_fmax == 512 and t.psum_bank_fmax == 512\n"
             "assert t.psum_bank_fmax_bytes == 2048 and t.gemm_stationary_fmax == 128 and t.gemm_moving_fmax == 512\n"
             "assert t.bn_stats_fmax == 512 and t.psum_num_banks == 8 and t.sbuf_fmax == t.sbuf_fmax_bytes // 4\n"
             "assert t.total_available_sbuf_size == t.sbuf_fmax_bytes and t.psum_min_align > 0 < t.sbuf_min_align", X),
        *(_stated("nl.tile_size", f"SBUF of {core}", f"assert nl.tile_size.sbuf_size_bytes == {kib} * 1024 * 128", X,
             core=core) for core, kib in (("trn1", 192), ("trn2", 224), ("trn3", 256))),
        PageRule("nl.NKIObject", "a configuration", "@dataclass\nclass C(nl.NKIObject):\n    n: int\n"
             "    twice: bool = False\nc = C(32)\nassert not c.twice\no = nl.copy(x[:, 0:c.n])", X[:, :32], (X,)),
        PageRule("nl.NKIObject", "no other base", "class B:\n    pass\nclass C(nl.NKIObject, B):\n    n: int = 1\n"
             "o = nl.copy(x[:, 0:C().n])", None, (X,)),
    ]  # fmt: skip


def _views() -> list[PageRule]:
    free = "t = x.reshape((32, 4, 16))"
    return [
        _view("a slice", "x[:, 0:32]", X[:, :32], X),
        _view("a slice with a step", "x[:, 0:32:2]", X[:, 0:32:2], X),
        _view("the last dimension", "x[..., 0]", X[:, :1], X),
        _view("views of views", "x.reshape((32, 4, 16))[0:16, :, :].permute((0, 2, 1))[:, 3, :]", CUBE[:16, :, 3], X),
        _view("permute", "x.permute((0, 2, 1))", CUBE.transpose(0, 2, 1), CUBE),
        _view("broadcast", "x[:, 0:1, :].broadcast(1, 8)", CUBE[:, :1].repeat(8, 1), CUBE),
        _view("expand_dim", "x.expand_dim(1)", X[:, None], X),
        _view("expand_dim at the end", "x.expand_dim(2)", X[..., None], X),
        _view("squeeze_dim", "x.expand_dim(1).squeeze_dim(1)", X, X),
        _view("reshape_dim", "x.reshape_dim(1, (4, 16))", CUBE, X),
        _view("reshape_dim infers", "x.reshape_dim(1, (4, -1))", CUBE, X),
        _view("reshape_dim of the partitions, trivially", "x.reshape_dim(0, (32,))", X, X),
        _view("flatten_dims", "x.flatten_dims(1, 2)", X, CUBE),
        _view("reshape", "x.reshape((32, 64))", X, CUBE),
        _view("reshape by name", "x.reshape(shape=(32, 2, 32))", X.reshape(32, 2, 32), CUBE),
        _view("rearrange", "x.rearrange(('b', ('h', 'w')), ('b', 'w', 'h'), {'h': 4})", CUBE.transpose(0, 2, 1), X),
        _view("slice", "x.slice(1, 8, 24, 1)", X[:, 8:24], X),
        _view("slice with a step", "x.slice(dim=1, start=0, end=64, step=2)", X[:, ::2], X),
        _view("select", "x.select(1, 3)", CUBE[:, 3], CUBE),
        _view("an access pattern", "x.ap(pattern=[[64, 32], [2, 32]])", X[:, ::2], X),
        _view("an offset", "x.ap([[64, 32], [1, 8]], offset=8)", X[:, 8:16], X),
        _view("an access pattern on a view addresses the tensor", "x.ap([[64, 32], [2, 32]]).ap([[64, 32], [1, 16]])",
              X[:, :16], X),
        _view("pairs repeat", "x.ap([[64, 32], [0, 4], [1, 16]])", np.repeat(X[:, None, :16], 4, 1), X),
        _view("a pattern that was read", "x.ap(pattern=[[p[0], 16] if i == 0 else p for i, p in "
              "enumerate(x.get_pattern())])", X[:16], X),
        _view("other bits of one size", "x.view(nl.int32)", X.view(np.int32), X),
        _view("smaller elements", "x.view(nl.uint8)", X.view(np.uint8), X),
        _view("larger elements", "x.view(nl.uint32)", Y.astype(np.uint8).view(np.uint32), Y.astype(np.uint8)),
        _view("a pattern of other bits", "x.ap([[256, 32], [1, 256]], dtype=nl.uint8)", X.view(np.uint8), X),
        _view("reinterpret_cast is view", "x.reinterpret_cast(nl.int32)", X.view(np.int32), X),
        PageRule(ONE, "select at a number of the device", "i = nl.full((1, 1), 2, dtype=nl.int32)\n"
             "o = nl.load(a.select(0, i))", ROWS[2], (ROWS,)),
        PageRule(ONE, "vector_select", "i = nl.load(b)\no = nl.load(a.vector_select(0, i))\nassert o.shape[0] == 4",
             ROWS[PICKED[:, 0]], (ROWS, PICKED)),
        PageRule(ONE, "a scalar offset", "i = nl.full((1, 1), 8, dtype=nl.int32)\n"
             "o = nl.load(a.ap([[64, 16], [1, 32]], 0, scalar_offset=i, indirect_dim=0))", X[8:24, :32], (X,)),
        PageRule(ONE, "a vector offset", "i = nl.ndarray((16, 1), nl.int32)\nnisa.iota(i, [[1, 1]], 0, 2)\n"
             "o = nl.load(a.ap([[64, 16], [1, 64]], 0, vector_offset=i, indirect_dim=0))", X[::2], (X,)),
        PageRule(ONE, "written through one view, read through another",
             f"{new('o')}\nu = o.reshape((32, 8, 8))\nnisa.memset(u, 1.0)", np.ones_like(X), (X,)),
        PageRule(ONE, "written through a view of its bits", f"{new('o', 'int32')}\n"
             "nisa.tensor_copy(o.view(nl.float32), x)", X.view(np.int32), (X,)),
        PageRule(ONE, "a view of bits sees later writes", f"{new('t')}\nv = t.view(nl.int32)\n"
             "nisa.tensor_copy(t, x)\no = nl.copy(v)", X.view(np.int32), (X,)),
        PageRule(ONE, "a part of it too", f"{new('o', 'int32')}\nnisa.memset(o, 0)\n"
             "nisa.tensor_copy(o.view(nl.float32)[:, 0:32], x[:, 0:32])",
             np.where(np.arange(64) < 32, X.view(np.int32), 0), (X,)),
        _forbidden("permute all dimensions", "x.permute((0, 1, 1))"),
        _forbidden("permute keeps the partitions first", "x.permute((1, 0))"),
        _forbidden("broadcast from 1", "x.broadcast(1, 8)"),
        _forbidden("broadcast no partitions", "x[0:1].broadcast(0, 8)"),
        _forbidden("expand_dim not before the partitions", "x.expand_dim(0)"),
        _forbidden("squeeze_dim of size 1", "x.squeeze_dim(1)"),
        _forbidden("squeeze_dim no partitions", "x[0:1].squeeze_dim(0)"),
        _forbidden("reshape_dim keeps the size", "x.reshape_dim(1, (4, 15))"),
        _forbidden("reshape_dim no partitions", "x.reshape_dim(0, (4, 8))"),
        _forbidden("flatten_dims no partitions", f"{free}\nt.flatten_dims(0, 1)"),
        _forbidden("flatten_dims what lies in one row", f"{free}\nt.permute((0, 2, 1)).flatten_dims(1, 2)"),
        _forbidden("reshape keeps the count (0.5)", "x.reshape((32, 63))"),
        _forbidden("reshape keeps the partitions", "x.reshape((16, 128))"),
        _forbidden("reshape what lies in one row", f"{free}\nt.permute((0, 2, 1)).reshape((32, 64))"),
        _forbidden("rearrange what divides", "x.rearrange(('b', ('h', 'w')), ('b', 'w', 'h'), {'h': 5})"),
        _forbidden("rearrange the same names", "x.rearrange(('b', 'f'), ('b', 'g'))"),
        _forbidden("slice has elements", "x.slice(1, 8, 8)"),
        _forbidden("slice within the dimension", "x.slice(1, 8, 65)"),
        _forbidden("slice from 0 on", "x.slice(1, -8, 64)"),
        _forbidden("slice with a step of 1 at least", "x.slice(1, 0, 8, 0)"),
        _forbidden("a dimension that exists", "x.slice(2, 0, 8)"),
        _forbidden("select from 0 on", "x.select(1, -1)"),
        _forbidden("select within the dimension", "x.select(1, 64)"),
        _forbidden("select one number of the device at most",
             "i = nl.full((1, 1), 0, dtype=nl.int32)\na.select(0, i).select(0, i)", ROWS),
        _forbidden("select no partition at a number of the device",
             "i = nl.full((1, 1), 0, dtype=nl.int32)\nnl.copy(x.select(0, i))"),
        _forbidden("vector_select on dimension 0", "i = nl.full((4, 1), 0, dtype=nl.int32)\na.vector_select(1, i)",
             ROWS),
        _forbidden("vector_select in HBM", "i = nl.full((4, 1), 0, dtype=nl.int32)\nx.vector_select(0, i)"),
        _forbidden("an indirect dimension is not sliced",
             "i = nl.full((4, 1), 0, dtype=nl.int32)\na.vector_select(0, i).slice(0, 0, 2)", ROWS),
        _forbidden("patterns step from partition to partition", "x.ap([[128, 16], [1, 32]])"),
        _forbidden("patterns stay inside", "x.ap([[64, 32], [1, 65]], offset=1)"),
        _forbidden("one offset of the device at most", "i = nl.full((4, 1), 0, dtype=nl.int32)\n"
             "a.ap([[64, 4], [1, 8]], 0, scalar_offset=i[0:1], vector_offset=i)"),
        _forbidden("a vector offset on dimension 0 only", "i = nl.full((4, 1), 0, dtype=nl.int32)\n"
             "a.ap([[64, 4], [1, 8]], 0, vector_offset=i, indirect_dim=1)"),
        _forbidden("five dimensions at most", "nl.copy(x.reshape((32, 2, 2, 2, 2, 4)))"),
        _forbidden("a view of larger elements divides", "x[:, 0:63].view(nl.float32)", Y.astype(np.uint8)),
        _forbidden("a view of bits needs one row", "x[:, ::2].view(nl.uint8)"),
        _forbidden("no view of bits of an indirect view",
             "i = nl.full((4, 1), 0, dtype=nl.int32)\na.vector_select(0, i).view(nl.int32)", ROWS),
        _forbidden("indirect needs trn3", "i = nl.full((32, 1), 0, dtype=nl.uint16)\nx.indirect(i)"),
        _forbidden("no assignment", "x[0:1] = 1.0"),
        _forbidden("no operators", "x + x"),
    ]  # fmt: skip


RULES = (*_creation(), *_attributes(), *_views())
