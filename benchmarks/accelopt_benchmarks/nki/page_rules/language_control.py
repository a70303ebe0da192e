"""nki.language: loops, programs, printing; nki itself."""

from __future__ import annotations

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import PageRule, X, new

COUNT = np.array([[3]], np.int32)
TALL = np.arange(96 * 64, dtype=np.float32).reshape(96, 64)
ADDED = "nisa.tensor_scalar(o, o, nl.add, 1.0)"
_ZEROS = "o = nl.zeros((32, 64), dtype=nl.float32)"


def _sum(count: int) -> np.ndarray:
    return np.full((32, 64), count, np.float32)


def _ranges() -> list[PageRule]:
    rules = []
    for name in ("affine_range", "sequential_range", "static_range"):
        call = f"nl.{name}"
        rules += [
            PageRule(call, "to a stop", f"{_ZEROS}\nfor i in {call}(3):\n    {ADDED}", _sum(3), (X,)),
            PageRule(call, "by names", f"{_ZEROS}\nfor i in {call}(start=2, stop=10, step=4):\n    {ADDED}", _sum(2),
                 (X,)),
            PageRule(call, "from a start", f"assert list({call}(1, 4)) == [1, 2, 3]\n{_ZEROS}", _sum(0), (X,)),
            PageRule(call, "with a step", f"assert list({call}(0, 8, 3)) == [0, 3, 6]\n{_ZEROS}", _sum(0), (X,)),
            PageRule(call, "tiles",
                 f"{new('r', like='(96, 64)', buffer='shared_hbm')}\nfor i in {call}(a.shape[0] // 32):\n"
                 "    t = nl.load(a[i * 32 : i * 32 + 32, :])\n"
                 "    nl.store(r[i * 32 : i * 32 + 32, :], nl.multiply(t, t))\nreturn r", TALL * TALL, (TALL,)),
            PageRule(call, "inside of no_reorder",
                 f"{_ZEROS}\nwith nl.no_reorder():\n    for i in {call}(3):\n        {ADDED}", _sum(3), (X,)),
            PageRule(call, "whole numbers", f"{_ZEROS}\nfor i in {call}(3.5):\n    {ADDED}", None, (X,)),
            PageRule(call, "bounds of compile time", f"{_ZEROS}\nr = nisa.register_alloc(3)\nfor i in {call}(r):\n"
                 f"    {ADDED}", None, (X,)),
        ]  # fmt: skip
    return rules


def _device_loops() -> list[PageRule]:
    one, two, dynamic = "nl.fori_loop", "nl.while_loop", "nl.dynamic_range"
    body = f"def body(i):\n    {ADDED}\n"
    register = "r = nisa.register_alloc()\nn = nl.load(b)\nnisa.register_load(r, n)\n"
    at = "src=a.ap([[1, 1], [1, 1]], scalar_offset=i, indirect_dim=1)"
    down = ("n = nl.load(b)\nr = nisa.register_alloc()\nnisa.register_load(r, n)\ndef body(r):\n"
            f"    {ADDED}\n    nisa.tensor_scalar(n, n, nl.subtract, 1)\n    nisa.register_load(r, n)\n"
            "    return r\n")  # fmt: skip
    return [
        PageRule(one, "numbers", f"{_ZEROS}\n{body}{one}(0, 4, body)", _sum(4), (X,)),
        PageRule(one, "by names", f"{_ZEROS}\n{body}{one}(lower=1, upper=8, body_fun=body, step=3)", _sum(3), (X,)),
        PageRule(one, "a register as bound", f"{_ZEROS}\n{register}{body}{one}(0, r, body)", _sum(3), (X, COUNT)),
        PageRule(one, "the counter is an offset",
             f"o = nl.zeros((1, 4), dtype=nl.float32)\nt = nl.ndarray((1, 1), nl.float32)\n"
             f"r = nl.ndarray((1, 4), nl.float32, nl.shared_hbm)\nnisa.dma_copy(r, o)\ndef body(i):\n"
             f"    nisa.dma_copy(dst=t, {at})\n"
             f"    nisa.dma_copy(dst=r.ap([[1, 1], [1, 1]], scalar_offset=i, indirect_dim=1), src=t)\n"
             f"{one}(0, 3, body)\nreturn r", np.array([[0, 1, 2, 0]], np.float32), (TALL,)),
        PageRule(one, "the step is positive", f"{_ZEROS}\n{body}{one}(0, 4, body, step=0)", None, (X,)),
        PageRule(one, "the step is no register",
             f"{_ZEROS}\ns = nisa.register_alloc(1)\n{body}{one}(0, 4, body, step=s)", None, (X,)),
        PageRule(one, "the body returns nothing",
             f"{_ZEROS}\ndef body(i):\n    {ADDED}\n    return i\n{one}(0, 4, body)", None, (X,)),
        PageRule(one, "not inside of no_reorder", f"{_ZEROS}\n{body}with nl.no_reorder():\n    {one}(0, 4, body)", None,
             (X,)),
        PageRule(two, "until the register is 0", f"{_ZEROS}\n{down}{two}(r, body)", _sum(3), (X, COUNT)),
        PageRule(two, "not once where it is 0", f"{_ZEROS}\n{down}{two}(r, body)", _sum(0), (X, 0 * COUNT)),
        PageRule(two, "init is a register", f"{_ZEROS}\n{down}{two}(3, body)", None, (X, COUNT)),
        PageRule(two, "the body returns the next condition", f"{_ZEROS}\n{register}{body}{two}(r, body)", None, (X,
             COUNT)),
        PageRule(two, "not inside of no_reorder",
             f"{_ZEROS}\n{down}with nl.no_reorder():\n    {two}(r, body)", None, (X, COUNT)),
        PageRule(dynamic, "numbers", f"{_ZEROS}\nfor i in {dynamic}(3):\n    {ADDED}", _sum(3), (X,), version="0.6"),
        PageRule(dynamic, "registers", f"{_ZEROS}\n{register}for i in {dynamic}(0, r, 2):\n    {ADDED}", _sum(2), (X,
             COUNT), version="0.6"),
        PageRule(dynamic, "the counter is an offset",
             "r = nl.ndarray((96, 64), nl.float32, nl.shared_hbm)\n"
             "for i in nl.dynamic_range(nisa.register_alloc(0), nisa.register_alloc(96), 32):\n"
             "    t = nl.load(a.ap([[64, 32], [1, 64]], scalar_offset=i))\n"
             "    nl.store(r.ap([[64, 32], [1, 64]], scalar_offset=i), t)\nreturn r", TALL, (TALL,), version="0.6"),
        PageRule(dynamic, "the counter is an index",
             "r = nl.ndarray((2, 48, 64), nl.float32, nl.shared_hbm)\n"
             "for i in nl.dynamic_range(2):\n    t = nl.load(a[i])\n    nl.store(r[i, ..., 0:64], t)\nreturn r",
             TALL.reshape(2, 48, 64), (TALL.reshape(2, 48, 64),), version="0.6"),
        PageRule(dynamic, "the step is no register",
             f"{_ZEROS}\n{register}for i in {dynamic}(0, 3, r):\n    {ADDED}", None, (X, COUNT), version="0.6"),
        PageRule(dynamic, "the step is positive", f"{_ZEROS}\nfor i in {dynamic}(3, 0, -1):\n    {ADDED}", None, (X,),
             version="0.6"),
        PageRule(dynamic, "its counter is not written (0.4)",
             f"{_ZEROS}\nfor i in {dynamic}(3):\n    nisa.register_move(i, 5)\n    {ADDED}", None, (X,), version="0.6"),
        PageRule(dynamic, "its counter is no Python number",
             f"{_ZEROS}\nfor i in {dynamic}(3):\n    if i == 0:\n        {ADDED}", None, (X,), version="0.6"),
        PageRule(dynamic, "not inside of no_reorder",
             f"{_ZEROS}\nwith nl.no_reorder():\n    for i in {dynamic}(3):\n        {ADDED}", None, (X,),
             version="0.6"),
        PageRule(dynamic, "no_reorder inside of it",
             f"{_ZEROS}\nfor i in {dynamic}(3):\n    with nl.no_reorder():\n        {ADDED}", _sum(3), (X,),
             version="0.6"),
        PageRule("nl.no_reorder", "values as without", f"{_ZEROS}\nwith nl.no_reorder():\n    {ADDED}\n    {ADDED}",
             _sum(2), (X,)),
    ]  # fmt: skip


def _programs() -> list[PageRule]:
    decorated = "@nki.jit{}\ndef inner(t):\n    return nl.multiply(t, 2.0)\no = inner(x)"
    return [
        PageRule("nl.program_id", "0 without a grid",
             "assert nl.program_id() == 0 and nl.program_id(axis=0) == 0\no = x", X, (X,)),
        PageRule("nl.num_programs", "1 without a grid",
             "assert nl.num_programs() == 1 and nl.num_programs(axes=0) == 1\no = x", X, (X,)),
        PageRule("nl.program_ndim", "0 without a grid", "assert nl.program_ndim() == 0\no = x", X, (X,)),
        PageRule("nl.device_print", "a tile of SBUF", "nl.device_print('x', x)\no = x", X, (X,)),
        PageRule("nl.device_print", "of HBM, by names", "nl.device_print(print_prefix='a', tensor=a)\no = x", X, (X,)),
        PageRule("nl.device_print", "a constant string", "nl.device_print(5, x)\no = x", None, (X,)),
        PageRule("nl.device_print", "a tensor", "nl.device_print('x', 5)\no = x", None, (X,)),
        PageRule("nl.device_print", "not of PSUM",
             f"{new('p', buffer='psum')}\nnisa.tensor_copy(p, x)\nnl.device_print('p', p)\no = x", None, (X,)),
        PageRule("nki.jit", "bare", decorated.format(""), 2 * X, (X,)),
        PageRule("nki.jit", "called", decorated.format("()"), 2 * X, (X,)),
        *(PageRule(f"nki.{name}", "is gone", f"nki.{name}(lambda: None)\no = x", None, (X,))
          for name in ("baremetal", "benchmark", "profile", "simulate_kernel")),
        PageRule("nki.typing", "annotations",
             "import nki.typing as nt\ndef f(t: nt.tensor):\n    return t\no = f(x)", X, (X,)),
    ]  # fmt: skip


RULES = (*_ranges(), *_device_loops(), *_programs())
