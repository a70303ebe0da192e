"""The client alone against a real HTTP server: what it sends, how it reads, how it waits and gives up."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.played_model import PATIENCE, Reply, chunk, error, playing, says

from accelopt_agent.model.answer import AnswerReader, UnusableAnswerError, repeats_itself
from accelopt_agent.model.client import ModelCallError, query_model, retry_after_seconds, retry_pause
from accelopt_agent.model.keys import without_key
from accelopt_agent.model.ledger import accounts, ledger_entry, total
from accelopt_agent.model.settings import ModelSettings


def settings(url: str, **options: Any) -> ModelSettings:
    return ModelSettings(url, "toy-model", seconds=PATIENCE, **options)


async def test_an_answer_is_streamed_and_counted() -> None:
    with playing([says("one two three", tokens=(90, 7), cached=64, pieces=5)]) as played:
        answer = await query_model(settings(played.url), "s", "u")
    assert (answer.text, answer.tokens_in, answer.tokens_out) == ("one two three", 90, 7)
    assert (answer.tokens_cached, answer.estimated) == (64, False)
    assert played.asked[0]["stream"] is True
    assert [m["role"] for m in played.asked[0]["messages"]] == ["system", "user"]


async def test_a_server_that_does_not_stream_is_read_as_well() -> None:
    with playing([says("hello", streams=False)]) as played:
        assert (await query_model(settings(played.url), "s", "u")).text == "hello"


async def test_tokens_that_the_server_does_not_count_are_estimated_and_said_to_be() -> None:
    with playing([says("x" * 40, tokens=None)]) as played:
        answer = await query_model(settings(played.url), "s" * 6, "u" * 6)
    assert (answer.tokens_in, answer.tokens_out, answer.estimated) == (3, 10, True)


async def test_what_was_thought_aloud_is_no_part_of_the_answer() -> None:
    with playing([says("<think>Hm. {wide}</think>\nMake it wide.")]) as played:
        assert (await query_model(settings(played.url), "s", "u")).text.strip() == "Make it wide."


@pytest.mark.parametrize(
    ("complaint", "sent_first", "sent_then"),
    [
        (
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.",
            "max_tokens",
            "max_completion_tokens",
        ),
        ("unknown field stream_options", "stream_options", None),
    ],
)
async def test_what_a_server_does_not_know_is_left_out_once_and_for_all(
    complaint: str, sent_first: str, sent_then: str | None
) -> None:
    with playing([error(400, complaint), says("{}")]) as played:
        for _ in range(2):
            await query_model(settings(played.url), "s", "u")
    assert sent_first in played.asked[0]
    for later in played.asked[1:]:
        assert sent_first not in later
        assert sent_then is None or later[sent_then] == 8192
    assert len(played.asked) == 3


async def test_a_model_that_is_not_there_is_answered_with_those_that_are() -> None:
    with (
        playing([error(404)], models=["toy-model-2", "other"]) as played,
        pytest.raises(ModelCallError, match=r"does not exist.* It has toy-model-2") as caught,
    ):
        await query_model(settings(played.url), "s", "u")
    assert caught.value.final
    assert len(played.asked) == 1  # and it is not asked in place of the other


async def test_tokens_of_an_answer_that_was_stopped_are_paid_for() -> None:
    piece = chunk({"content": "again and again, "})
    with playing([Reply(events=(piece,), endless=True)]) as played:
        with pytest.raises(ModelCallError, match="repeats itself") as caught:
            await query_model(settings(played.url), "s" * 40, "u")
        assert played.left.wait(PATIENCE)  # the server is told to stop
    assert caught.value.estimated
    assert 100 < caught.value.tokens_out < 2000


async def test_cancelling_ends_the_servers_work() -> None:
    """Long before the answer would be given up: the model's patience is ten times that of this test."""
    silent = Reply(events=(chunk({"content": "Let me"}),), hang=True)
    with playing([silent]) as played:
        task = asyncio.create_task(
            query_model(ModelSettings(played.url, "toy-model", seconds=10 * PATIENCE), "s", "u")
        )
        assert await asyncio.to_thread(played.came.wait, PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, PATIENCE)
        assert await asyncio.to_thread(played.left.wait, PATIENCE)


async def test_an_answer_that_drips_is_ended_after_the_longest_time() -> None:
    drip = chunk({})
    with (
        playing([Reply(events=(drip,), endless=True)]) as played,
        pytest.raises(ModelCallError, match=r"was not done after 0.3 s"),
    ):
        await query_model(settings(played.url, longest_seconds=0.3, attempts=1), "s", "u")


async def test_a_server_that_repeats_the_key_does_not_get_it_into_the_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOY_KEY", "a-secret-of-some-length")
    with (
        playing([error(403, "key a-secret-of-some-length is barred\nand more")]) as played,
        pytest.raises(ModelCallError, match=r"\(key\) is barred and more") as caught,
    ):
        await query_model(settings(played.url, key_variable="TOY_KEY"), "s", "u")
    assert "a-secret" not in str(caught.value)


def test_pauses_double_and_are_at_least_what_the_server_asks() -> None:
    assert [retry_pause(n, 1.0, None) for n in (1, 2, 3)] == [1, 2, 4]
    assert retry_pause(1, 1.0, 7.5) == 7.5
    assert retry_pause(4, 1.0, 7.5) == 8
    assert retry_after_seconds({"retry-after": "2.5"}) == 2.5
    now = 1_700_000_000.0
    assert retry_after_seconds({"retry-after": email.utils.formatdate(now + 9, usegmt=True)}, now) == 9
    assert retry_after_seconds({}) is retry_after_seconds({"retry-after": "soon"}) is None
    assert retry_after_seconds({"retry-after": "-5"}) == 0


@given(
    st.text(max_size=50),
    st.text(alphabet="abc(),:= \n", min_size=2, max_size=300).filter(lambda s: s.strip("(),:= \n")),
)
def test_repetition_is_found_whatever_came_before(before: str, piece: str) -> None:
    assert repeats_itself(before + piece * (1 + max(1200, 8 * len(piece)) // len(piece)))


def test_kernels_and_tables_are_no_repetition() -> None:
    lines = "".join(f"    acc_{k} = nl.add(acc_{k}, tile_{k})\n" for k in range(200))
    assert not repeats_itself(lines)
    assert not repeats_itself("-" * 5000)
    assert not repeats_itself("x = 1\n" * 7)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda v: (
            st.lists(v, max_size=3)
            | st.dictionaries(
                st.sampled_from(["choices", "delta", "content", "usage", "finish_reason", "message"]),
                v,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_answer_of_a_server_breaks_the_reading(event: Any) -> None:
    reading = AnswerReader(100, 100)
    reading.take(event)
    with contextlib.suppress(UnusableAnswerError):
        assert reading.finish(streamed=False).text.strip()


def test_the_ledger_sums_by_role_and_model_and_prices_cached_tokens_apart() -> None:
    priced = ModelSettings("http://x/v1", "m", price_in=2.0, price_out=10.0, price_cached=0.5)
    good = ledger_entry(
        "planner", priced, ModelCallError("m refuses", tokens_in=1000, tokens_out=100, tokens_cached=400), 1.5
    )
    other = ledger_entry("coder", ModelSettings("http://x/v1", "n"), ModelCallError("n fails"), 0.5)
    assert good.money == pytest.approx((600 * 2 + 400 * 0.5 + 100 * 10) / 1e6)
    sums = accounts([good, other, good])
    assert [(a.role, a.model, a.calls, a.faults) for a in sums] == [
        ("planner", "m", 2, 2),
        ("coder", "n", 1, 1),
    ]
    assert sums[1].money is None
    everything = total([good, other, good])
    assert (everything.tokens_in, everything.tokens_cached, everything.seconds) == (2000, 800, 3.5)


def test_keys_are_taken_out_of_what_a_server_says() -> None:
    assert (
        without_key("your key sk-abcdefghij1234 is\tbad\n\x1b[2Jnow", "other")
        == "your key (key) is bad [2Jnow"
    )
