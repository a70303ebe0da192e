"""Random numbers of nki.language and nki.isa: the pages give their distribution, and no values."""

from __future__ import annotations

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import WHOLE, PageRule, X, new

HALF = X.astype(np.float16)
LIKELY = np.linspace(0, 1, 32, dtype=np.float32).reshape(32, 1).round()
SEEDS = np.arange(32 * 24, dtype=np.uint32).reshape(32, 24)
_SEED = "s = nl.full((1, 1), 42, dtype=nl.int32, buffer=nl.sbuf)"
_WITHIN = "o = nl.logical_and(nl.greater_equal(r, {}), nl.less_equal(r, {}))"
_ONES = np.ones((32, 64), np.float32)
_LARGE = "r = nl.rand((128, 512), dtype=nl.float32)\nm = nl.mean(r, axis=1)\n"


def _within(low: float, high: float) -> str:
    return _WITHIN.format(low, high)


def _language() -> list[PageRule]:
    rand, seed, drop = "nl.rand", "nl.random_seed", "nl.dropout"
    drawn = f"{rand}((32, 64), dtype=nl.float32)"
    twice = f"{_SEED}\n{seed}(s)\nf = {drawn}\n{seed}(s)\ng = {drawn}\n"
    return [
        PageRule(rand, "from 0 to 1", f"r = {drawn}\nassert r.buffer == nl.sbuf\n{_within(0, 1)}", _ONES, (X,)),
        PageRule(rand, "about half of them below a half", f"{_LARGE}o = nl.logical_and(nl.greater(m, 0.4), "
             "nl.less(m, 0.6))", np.ones((128, 1), np.float32), (X,)),
        PageRule(rand, "in another type", f"r = {rand}((32, 64), nl.bfloat16)\nassert r.dtype == nl.bfloat16\n"
             "o = nl.logical_and(nl.greater_equal(r, 0, dtype=nl.float32), nl.less_equal(r, 1, dtype=nl.float32))",
             _ONES, (X,)),
        PageRule(rand, "with a buffer and a name", f"r = {rand}((32, 64), nl.float32, buffer=nl.psum, name='r')\n"
             f"assert r.buffer == nl.psum and r.name == 'r'\nr = nl.copy(r)\n{_within(0, 1)}", _ONES, (X,)),
        PageRule(rand, "needs a type", f"o = {rand}((32, 64))", None, (X,)),
        PageRule(seed, "one seed, one sequence (trn3)", f"{twice}o = nl.equal(f, g)", _ONES, (X,), "trn3"),
        PageRule(seed, "takes a tensor", f"{seed}(42)\no = x", None, (X,)),
        PageRule(seed, "of one element", f"{seed}(nl.full((2, 1), 42, dtype=nl.int32))\no = x", None, (X,)),
        PageRule(seed, "of 32 bits", f"{seed}(nl.full((1, 1), 42, dtype=nl.int16))\no = x", None, (X,)),
        PageRule(seed, "on the chip", f"{seed}(a[0:1, 0:1])\no = x", None, (X,)),
        PageRule(drop, "keeps all at 0", f"o = {drop}(x, 0.0)", X, (X,)),
        PageRule(drop, "drops all at 1", f"o = {drop}(x, 1.0)", 0 * X, (X,)),
        PageRule(drop, "a rate for each partition", f"o = {drop}(x, rate=y)", np.where(LIKELY, 0, X), (X, LIKELY)),
        PageRule(drop, "elements stay or are 0", f"d = {drop}(x, 0.5)\n"
             "o = nl.logical_or(nl.equal(d, x), nl.equal(d, 0.0))", _ONES, (X,)),
        PageRule(drop, "in another type", f"o = {drop}(x, 0.0, dtype=nl.float16)\nassert o.dtype == nl.float16", HALF,
             (X,)),
        PageRule(drop, "one rate for each partition", f"o = {drop}(x, y)", None, (X, LIKELY.repeat(2, 1))),
    ]  # fmt: skip


def _instructions() -> list[PageRule]:
    rng, rand2, drop = "nisa.rng", "nisa.rand2", "nisa.dropout"
    put, get, seed = "nisa.rand_set_state", "nisa.rand_get_state", "nisa.set_rng_seed"
    state = "g = nl.ndarray((32, {n}), nl.uint32)"
    bits = [
        PageRule(rng, f"bits of {kind}", f"{new('r', kind)}\n{rng}(r)\no = nl.copy(nl.greater_equal(r, {low}, "
             "dtype=nl.float32))", _ONES, (X,))
        for kind, low in (("int8", -128), ("int16", -(2**15)), ("int32", -(2**31)), ("uint8", 0), ("uint16", 0),
                          ("uint32", 0))
    ]  # fmt: skip
    return [
        *bits,
        PageRule(rng, "not all alike", f"{new('r', 'uint16')}\n{rng}(r)\nm = nl.mean(r, axis=1, dtype=nl.float32)\n"
             "o = nl.logical_and(nl.greater(m, 13000), nl.less(m, 52000))", np.ones((32, 1), np.float32), (X,)),
        PageRule(rng, "integers only", f"{new('r')}\n{rng}(r)\no = x", None, (X,)),
        PageRule(rng, "into PSUM", f"{new('r', 'int32', buffer='psum')}\n{rng}(r)\no = x", X, (X,)),
        PageRule(rng, "not into HBM", f"{new('r', 'int32', buffer='shared_hbm')}\n{rng}(r)\no = x", None, (X,)),
        PageRule(rng, "on GpSimdE", f"{new('r', 'int32')}\n{rng}(r, engine=nisa.engine.gpsimd)\no = x", X, (X,)),
        PageRule(rng, "not from GpSimdE into PSUM",
             f"{new('r', 'int32', buffer='psum')}\n{rng}(r, engine=nisa.engine.gpsimd)\no = x", None, (X,)),
        PageRule(rng, "GpSimdE needs trn2", f"{new('r', 'int32')}\n{rng}(r, engine=nisa.engine.gpsimd)\no = x", None,
             (X,), "trn1"),
        PageRule(rng, "VectorE or GpSimdE", f"{new('r', 'int32')}\n{rng}(r, engine=nisa.engine.scalar)\no = x", None,
             (X,)),
        PageRule(rand2, "from min to max", f"{new('r')}\n{rand2}(r, min=-2.0, max=3.0)\n{_within(-2, 3)}", _ONES, (X,),
             "trn3"),
        PageRule(rand2, "limits for each partition", f"{new('r')}\n{rand2}(r, x[:, 0:1], y[:, 0:1])\n"
             "o = nl.logical_and(nl.greater_equal(r, x[:, 0:1]), nl.less_equal(r, y[:, 0:1]))", _ONES, (X, X + 1),
             "trn3"),
        PageRule(rand2, "min below max", f"{new('r')}\n{rand2}(r, 3.0, -2.0)\no = x", None, (X,), "trn3"),
        PageRule(rand2, "into whole numbers", f"{new('r', 'int32')}\n{rand2}(r, 0.0, 9.0)\n"
             "o = nl.copy(nl.less_equal(r, 9, dtype=nl.float32))", _ONES, (X,), "trn3"),
        PageRule(rand2, "not into HBM", f"{new('r', buffer='shared_hbm')}\n{rand2}(r, 0.0, 1.0)\no = x", None, (X,),
             "trn3"),
        PageRule(rand2, "not every type", f"{new('r', 'float8_e4m3fn')}\n{rand2}(r, 0.0, 1.0)\no = x", None, (X,),
             "trn3"),
        PageRule(rand2, "needs trn3", f"{new('r')}\n{rand2}(r, 0.0, 1.0)\no = x", None, (X,)),
        PageRule(seed, "one seed, one sequence",
             f"{_SEED}\n{new('f', 'int32')}\n{new('g', 'int32')}\n{seed}(s)\n{rng}(f)\n{seed}(s)\n{rng}(g)\n"
             "o = nl.equal(nl.bitwise_xor(f, g), 0, dtype=nl.float32)", _ONES, (X,)),
        PageRule(seed, "one element", f"{seed}(nl.full((1, 2), 1, dtype=nl.int32))\no = x", None, (X,)),
        PageRule(seed, "32 bits", f"{seed}(nl.full((1, 1), 1, dtype=nl.int8))\no = x", None, (X,)),
        PageRule(seed, "on the chip", f"{seed}(a[0:1, 0:1])\no = x", None, (WHOLE,)),
        PageRule(put, "the state that get returns", f"{put}(x[:, 0:6])\n{new('f', 'uint32')}\n"
             f"g = nl.ndarray((32, 6), nl.uint32)\n{get}(g)\no = g", SEEDS[:, :6], (SEEDS,)),
        PageRule(put, "one state, one sequence",
             "f = nl.ndarray((32, 64), nl.int32)\ng = nl.ndarray((32, 64), nl.int32)\n"
             f"{put}(x[:, 0:6])\n{rng}(f, engine=nisa.engine.gpsimd)\n{put}(x[:, 0:6])\n"
             f"{rng}(g, engine=nisa.engine.gpsimd)\no = nl.equal(nl.bitwise_xor(f, g), 0, dtype=nl.float32)", _ONES,
             (SEEDS,)),
        PageRule(put, "24 on VectorE of trn3", f"{put}(x, engine=nisa.engine.vector)\no = x", SEEDS, (SEEDS,), "trn3"),
        PageRule(put, "VectorE needs trn3", f"{put}(x, engine=nisa.engine.vector)\no = x", None, (SEEDS,)),
        PageRule(put, "6 on GpSimdE", f"{put}(x)\no = x", None, (SEEDS,)),
        PageRule(put, "24 on VectorE", f"{put}(x[:, 0:6], engine=nisa.engine.vector)\no = x", None, (SEEDS,), "trn3"),
        PageRule(put, "uint32", f"{put}(x[:, 0:6])\no = x", None, (X,)),
        PageRule(put, "SBUF", f"{put}(a[:, 0:6])\no = x", None, (SEEDS,)),
        PageRule(put, "needs trn2", f"{put}(x[:, 0:6])\no = x", None, (SEEDS,), "trn1"),
        PageRule(get, "6 on GpSimdE", f"{state.format(n=24)}\n{get}(g)\no = x", None, (X,)),
        PageRule(get, "24 on VectorE of trn3", f"{state.format(n=24)}\n{get}(g, engine=nisa.engine.vector)\no = x", X,
             (X,), "trn3"),
        PageRule(get, "VectorE needs trn3", f"{state.format(n=24)}\n{get}(g, engine=nisa.engine.vector)\no = x", None,
             (X,)),
        PageRule(get, "uint32", f"g = nl.ndarray((32, 6), nl.int32)\n{get}(g)\no = x", None, (X,)),
        PageRule(get, "SBUF", f"g = nl.ndarray((32, 6), nl.uint32, nl.psum)\n{get}(g)\no = x", None, (X,)),
        PageRule(get, "needs trn2", f"{state.format(n=6)}\n{get}(g)\no = x", None, (X,), "trn1"),
        PageRule(drop, "keeps all at 0", f"{new('o')}\n{drop}(o, x, 0.0)", X, (X,)),
        PageRule(drop, "drops all at 1", f"{new('o')}\n{drop}(dst=o, data=x, prob=1.0)", 0 * X, (X,)),
        PageRule(drop, "one for each partition", f"{new('o')}\n{drop}(o, x, y)", np.where(LIKELY, 0, X), (X, LIKELY)),
        PageRule(drop, "elements stay or are 0", f"{new('d')}\n{drop}(d, x, 0.5)\n"
             "o = nl.logical_or(nl.equal(d, x), nl.equal(d, 0.0))", _ONES, (X,)),
        PageRule(drop, "integers", f"{new('o', 'int32')}\n{drop}(o, x, 0.0)", WHOLE, (WHOLE,)),
        PageRule(drop, "float32 for integers", f"{new('o', 'int32')}\n{drop}(o, x, y)", None, (WHOLE,
             LIKELY.astype(np.float16))),
        PageRule(drop, "a float", f"{new('o')}\n{drop}(o, x, y)", None, (X, LIKELY.astype(np.int32))),
        PageRule(drop, "one type", f"{new('o', 'float16')}\n{drop}(o, x, 0.0)", None, (X,)),
        PageRule(drop, "one for a partition", f"{new('o')}\n{drop}(o, x, y)", None, (X, LIKELY.repeat(2, 1))),
    ]  # fmt: skip


RULES = (*_language(), *_instructions())
