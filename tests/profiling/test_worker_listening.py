"""Descriptors are numbers that come back: what is heard on one never reaches whom it belonged to before."""

import os

from accelopt_profiling.worker.listening import Listening


def test_what_was_ended_meanwhile_is_not_called_for_the_descriptor_that_took_its_number():
    listening, heard = Listening(), []
    pipes = [os.pipe(), os.pipe()]

    def replace(mine: int, other: int) -> None:
        """As when a step ends: its pipes are closed, and those of the next step get their numbers."""
        heard.append(mine)
        listening.forget(other)
        os.close(other)
        again, writing = os.pipe()
        assert again == other
        os.write(writing, b"x")
        listening.hear(again, lambda: heard.append("next"))
        listening.forget(mine)

    first, second = (reading for reading, _ in pipes)
    listening.hear(first, lambda: replace(first, second))
    listening.hear(second, lambda: replace(second, first))
    for _, writing in pipes:
        os.write(writing, b"x")
    listening.wait(1)
    assert len(heard) == 1
    assert heard[0] in (first, second)
    listening.wait(1)
    assert heard[1:] == ["next"]


def test_forgetting_twice_does_nothing():
    listening = Listening()
    reading, writing = os.pipe()
    listening.hear(reading, lambda: None)
    listening.forget(reading)
    listening.forget(reading)
    os.close(reading)
    os.close(writing)
