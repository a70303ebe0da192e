"""Messages of a step: what others write into its pipe, leave out, repeat or exchange is no message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelopt_profiling.worker.frames import ForgedMessageError, SealedDecoder, new_key, sealer

MESSAGES = [{"type": "partial", "value": n * "é"} for n in range(4)]


def sealed(key: bytes) -> list[bytes]:
    seal = sealer(key)
    return [seal(message) for message in MESSAGES]


@given(st.integers(1, 99))
def test_messages_arrive_as_sent_however_they_are_cut(size: int) -> None:
    key = new_key()
    data, decoder = b"".join(sealed(key)), SealedDecoder(key)
    assert [m for at in range(0, len(data), size) for m in decoder.feed(data[at : at + size])] == MESSAGES
    assert not decoder.unfinished


@pytest.mark.parametrize(
    "forge",
    [
        lambda frames: [frames[1], frames[0]],
        lambda frames: [frames[0], frames[0]],
        lambda frames: [frames[1]],
        lambda frames: [frames[0], bytes(16) + frames[1][16:]],
        lambda frames: [frames[0][:-1] + b"]"],
        lambda frames: [b'@accelopt/1 2\n{}\n' * 9],
        lambda frames: [b"\xff" * 64],
        lambda frames: sealed(new_key()),
    ],
    ids=["exchanged", "repeated", "left out", "unsealed", "altered", "frames of the worker", "noise", "another key"],
)  # fmt: skip
def test_forged_messages_are_told(forge) -> None:
    key = new_key()
    decoder = SealedDecoder(key)
    try:
        decoder.feed(b"".join(forge(sealed(key))))
    except ForgedMessageError:
        return
    assert decoder.unfinished  # taken for the beginning of a long message, whose end never comes


def test_a_message_that_was_begun_is_unfinished() -> None:
    key = new_key()
    decoder = SealedDecoder(key)
    assert decoder.feed(sealed(key)[0][:-1]) == []
    assert decoder.unfinished
