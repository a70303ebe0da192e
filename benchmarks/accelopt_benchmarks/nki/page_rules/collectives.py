"""nki.collectives: one rank is computed; of several, each holds what this one does, as the finding says."""

from __future__ import annotations

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import Array, PageRule, X, Y

_HEAD = "import nki.collectives as ncc\n"
_NEW = "{name} = nl.ndarray({shape}, {kind}, nl.shared_hbm)\n"
FOUR, EIGHT = np.arange(4, dtype=np.uint32), X.reshape(8, 256)
_COUNTS = np.array([[2, 0, 0, 0], [3, 0, 0, 0], [9, 9, 9, 9]], np.uint32)
_TO_EACH = np.array([[2, 3, 1, 0], [3, 0, 0, 0], [9, 9, 9, 9]], np.uint32)
ROW = np.arange(8, dtype=np.float32).reshape(1, 8)


def _call(name: str, rest: str, srcs: str = "[a]", dsts: str = "[d]", group: str = "[[0]]") -> str:
    return f"ncc.{name}({srcs}, {dsts}, ncc.ReplicaGroup({group}){rest})\n"


def _out(shape: str = "a.shape", kind: str = "a.dtype", name: str = "d") -> str:
    return _NEW.format(name=name, shape=shape, kind=kind)


def _rule(
    name: str, text: str, body: str, expected: Array | None, *inputs: Array, core: str = "trn2", end: str = "return d"
) -> PageRule:  # fmt: skip
    return PageRule(f"nki.collectives.{name}", text, f"{_HEAD}{body}\n{end}", expected, inputs or (X,), core)


def _on_chip(call: str, shape: str = "x.shape") -> str:
    return f"d = nl.ndarray({shape}, x.dtype, nl.sbuf)\n{call}o = d"


def _reductions() -> list[PageRule]:
    rules = []
    for name, rest in (("all_reduce", ", nl.add"), ("reduce_scatter", ", 0, nl.add")):
        two = "(a.shape[0] // 2, a.shape[1])" if name == "reduce_scatter" else "a.shape"
        value = 2 * (X[:16] if name == "reduce_scatter" else X)
        once = _out() + _call(name, rest)
        rules += [
            _rule(name, "one rank", once, X),
            _rule(name, "two ranks", _out(two) + _call(name, rest, group="[[0, 1]]"), value),
            _rule(name, "two groups", _out(two) + _call(name, rest, group="[[0, 1], [2, 3]]"), value),
            *(_rule(name, f"nl.{op}", _out(two) + _call(name, rest.replace("add", op), group="[[0, 1]]"), value / 2)
              for op in ("minimum", "maximum")),
            *(_rule(name, f"not nl.{op}", _out() + _call(name, rest.replace("add", op)), None)
              for op in ("multiply", "subtract")),
            _rule(name, "several tensors of HBM", _out() + _out("b.shape", "b.dtype", "e")
                  + _call(name, rest, "[a, b]", "[d, e]"), Y, X, Y, end="return e"),
            _rule(name, "tensors of SBUF", _on_chip(_call(name, rest, "[x]")), X, end=""),
            _rule(name, "several of SBUF", _on_chip(_call(name, rest, "[x, x]", "[d, x]")), None, end=""),
            _rule(name, "groups do not overlap", _out(two) + _call(name, rest, group="[[0, 1], [1, 2]]"), None),
        ]  # fmt: skip
    return [
        *rules, _rule("reduce_scatter", "dimension 0 only", _out() + _call("reduce_scatter", ", 1, nl.add"), None),
        _rule("reduce_scatter", "parts of one size", _out("(31, 64)")
              + _call("reduce_scatter", ", 0, nl.add", group="[[0, 1]]"), None),
    ]  # fmt: skip


def _common() -> list[PageRule]:
    rules = []
    for name, rest in (("all_reduce", ", nl.add"), ("reduce_scatter", ", 0, nl.add"), ("all_gather", ", 0"),
                       ("all_to_all", ", 0")):  # fmt: skip
        rules += [
            _rule(name, "one space", f"d = nl.ndarray(a.shape, a.dtype, nl.sbuf)\n{_call(name, rest)}o = d", None,
                  end=""),
            _rule(name, "as many outputs as inputs", _out() + _call(name, rest, "[a, a]"), None),
            _rule(name, "lists", _out() + _call(name, rest, "a", "d"), None),
            _rule(name, "a replica group is needed",
                  _out() + f"ncc.{name}([a], [d])", None),
            _rule(name, "a replica group, no list", _out() + f"ncc.{name}([a], [d], [[0]]{rest})", None),
            _rule(name, "shapes fit", _out("(5, 7)") + _call(name, rest), None),
            _rule(name, "one type", _out(kind="nl.float16") + _call(name, rest), None),
            _rule(name, "priority on trn3, with a name",
                  _out() + _call(name, f"{rest}, priority=3, name='c'"), X, core="trn3"),
            _rule(name, "priority needs trn3", _out() + _call(name, f"{rest}, priority=0"), None),
            _rule(name, "priorities from 0 to 3", _out() + _call(name, f"{rest}, priority=4"), None, core="trn3"),
        ]  # fmt: skip
    return rules


def _gathers() -> list[PageRule]:
    gather, swap = "all_gather", "all_to_all"
    return [
        _rule(gather, "one rank", _out() + _call(gather, ", 0"), X),
        _rule(gather, "two ranks", _out("(64, 64)") + _call(gather, ", collective_dim=0", group="[[0, 1]]"),
              np.concatenate((X, X))),
        _rule(gather, "several tensors of HBM", _out() + _out("b.shape", "b.dtype", "e")
              + _call(gather, ", 0", "[a, b]", "[d, e]"), Y, X, Y, end="return e"),
        _rule(gather, "dimension 0 of HBM only", _out("(32, 128)") + _call(gather, ", 1", group="[[0, 1]]"), None),
        _rule(gather, "dimension 1 of SBUF", _on_chip(_call(gather, ", 1", "[x]", group="[[0, 1]]"), "(32, 128)"),
              np.concatenate((X, X), 1), end=""),
        _rule(gather, "dimension 0 of SBUF", _on_chip(_call(gather, ", 0", "[x]", group="[[0, 1]]"), "(64, 64)"),
              np.concatenate((X, X)), end=""),
        _rule(gather, "two dimensions of SBUF", _on_chip(_call(gather, ", 0", "[x]"), "(32, 4, 16)"), None,
              X.reshape(32, 4, 16), end=""),
        _rule(gather, "several of SBUF", _on_chip(_call(gather, ", 0", "[x, x]", "[d, x]")), None, end=""),
        _rule(swap, "one rank", _out() + _call(swap, ", 0"), X),
        _rule(swap, "two ranks", _out() + _call(swap, ", 0", group="[[0, 1]]"), np.concatenate((X[:16], X[:16]))),
        _rule(swap, "dimension 0 only", _out() + _call(swap, ", 1"), None),
        _rule(swap, "not SBUF", _on_chip(_call(swap, ", 0", "[x]")), None, end=""),
        _rule(swap, "parts of one size", _out() + _call(swap, ", 0", group="[[0, 1, 2]]"), None),
    ]  # fmt: skip


def _variable() -> list[PageRule]:
    one, each = "all_gather_v", "all_to_all_v"
    four = "[[0, 1, 2, 3]]"
    filled = _out("(1, 16)") + "z = nl.zeros((1, 16), dtype=nl.float32)\nnisa.dma_copy(d, z)\n"
    rules = []
    for name in (one, each):
        rules += [
            _rule(name, "one tensor", filled + _call(name, ", b", "[a, a]", "[d, d]", four), None, ROW, _COUNTS),
            _rule(name, "metadata of uint32", filled + _call(name, ", b", group=four), None, ROW,
                  _COUNTS.astype(np.int32)),
            _rule(name, "metadata in three rows", filled + _call(name, ", b", group=four), None, ROW, _COUNTS[:2]),
            _rule(name, "in HBM", _on_chip(_call(name, ", b", "[x]", group=four)), None, ROW, _COUNTS, end=""),
        ]  # fmt: skip
    sent = np.zeros((4, 4), np.float32)
    sent[:, :2] = ROW[0, 3:5]
    copied = filled + _out("b.shape", "b.dtype", "m") + "nisa.dma_copy(m, b)\n"
    return [
        *rules,
        _rule(each, "each rank's chunk in its slot", copied + _call(each, ", m", group=four), sent.reshape(1, 16), ROW,
              _TO_EACH),
        _rule(each, "counts are noted", copied + _call(each, ", m", group=four),
              np.concatenate((_TO_EACH[:2], np.full((1, 4), 2, np.uint32))), ROW, _TO_EACH, end="return m"),
        _rule(each, "known counts are left", copied + _call(each, ", m, recv_counts_known=True", group=four), _TO_EACH,
              ROW, _TO_EACH, end="return m"),
        _rule(each, "places need a NeuronSwitch", copied + _call(each, ", m, has_rdispls=True", group=four), None, ROW,
              np.concatenate((_TO_EACH, _TO_EACH[:1]))),
        _rule(each, "chunks that exist", copied + _call(each, ", m", group=four), None, ROW, _TO_EACH + np.uint32(5)),
        _rule(one, "LNC=2 only", filled + _call(one, ", b", group=four), None, ROW, _COUNTS),
        _rule(one, "no displacements", filled + _call(one, ", b, has_rdispls=True", group=four), None, ROW,
              np.concatenate((_COUNTS, _COUNTS[:1]))),
        _rule(one, "four ranks", filled + _call(one, ", b", group="[[0, 1]]"), None, ROW, _COUNTS[:, :2]),
    ]  # fmt: skip


def _permutes() -> list[PageRule]:
    one, ring, both = (
        "collective_permute",
        "collective_permute_implicit",
        "collective_permute_implicit_reduce",
    )
    name = "collective_permute_implicit_current_processing_rank_id"
    group = "ncc.ReplicaGroup({})"
    pairs = _out() + "ncc.collective_permute({}, {}, {})"
    implicit = _out() + f"ncc.{ring}({{}}, {{}}, {group.format('[[0, 1]]')}{{}})"
    reduced = _out() + f"ncc.{both}([[a]], [[b]], [[d]], {group.format('[[0, 1]]')}, {{}})"
    number = (
        f"n = ncc.{name}({{}}, ncc.ReplicaGroup([[0, 1, 2, 3]]))\n"
        "d = nl.load(a.ap([[64, 1], [1, 64]], scalar_offset=n))"
    )
    return [
        _rule(one, "a pair to itself", pairs.format("[a]", "[d]", "[(0, 0)]"), X),
        _rule(one, "a swap", pairs.format("[a]", "[d]", "[(0, 1), (1, 0)]"), X),
        _rule(one, "one tensor", pairs.format("[a, a]", "[d, d]", "[(0, 1), (1, 0)]"), None),
        _rule(one, "not SBUF", _on_chip("ncc.collective_permute([x], [d], [(0, 0)])\n"), None, end=""),
        _rule(one, "pairs", pairs.format("[a]", "[d]", "[(0, 1, 2)]"), None),
        _rule(one, "priority needs trn3", pairs.format("[a]", "[d]", "[(0, 0)], priority=1"), None),
        _rule(ring, "from the predecessor", implicit.format("[[a]]", "[[d]]", ""), X),
        _rule(ring, "two channels", _out() + _out(name="e")
              + f"ncc.{ring}([[a], [b]], [[d], [e]], {group.format('[[0, 1]]')}, channel_ids=[0, 1])", Y, X, Y,
              end="return e"),
        _rule(ring, "one tensor for a channel", implicit.format("[[a, a]]", "[[d, d]]", ""), None),
        _rule(ring, "channels from 0 on", implicit.format("[[a]]", "[[d]]", ", channel_ids=[1]"), None),
        _rule(ring, "an id for each channel", implicit.format("[[a]]", "[[d]]", ", channel_ids=[0, 1]"), None),
        _rule(ring, "four channels at most",
              implicit.format("[[a]] * 5", "[[d]] * 5", ", channel_ids=[0, 1, 2, 3, 4]"), None),
        _rule(both, "of two sources", reduced.format("nl.add"), X + Y, X, Y),
        _rule(both, "the larger one", reduced.format("op=nl.maximum"), np.maximum(X, Y), X, Y),
        _rule(both, "no product", reduced.format("nl.multiply"), None, X, Y),
        _rule(both, "channels from 0 on", reduced.format("nl.add, [2]"), None, X, Y),
        _rule(name, "its own at first", number.format("0"), X[:1], end="o = d"),
        _rule(name, "then its predecessors'", number.format("1"), X[3:4], end="o = d"),
        _rule("rank_id", "a number of the device",
              "n = ncc.rank_id()\nd = nl.load(a.ap([[64, 1], [1, 64]], scalar_offset=n))", X[:1], end="o = d"),
        _rule("rank_id", "with a name", "ncc.rank_id(name='r')", X, end="o = x"),
        _rule("ReplicaGroup", "groups do not overlap", "ncc.ReplicaGroup([[0, 1], [1, 2]])", None, end="o = x"),
        _rule("ReplicaGroup", "groups of ranks", "ncc.ReplicaGroup([[0, 1], [2, 3]])", X, end="o = x"),
    ]  # fmt: skip


RULES = (*_reductions(), *_common(), *_gathers(), *_variable(), *_permutes())
