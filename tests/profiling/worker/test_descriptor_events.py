"""A callback is never called for another descriptor that got the number of a closed one."""

import os

from accelopt_profiling.worker.descriptor_events import DescriptorEvents


def test_a_removed_callback_is_not_called_for_the_descriptor_that_took_its_number():
    events, heard = DescriptorEvents(), []
    pipes = [os.pipe(), os.pipe()]

    def replace(mine: int, other: int) -> None:
        """As when a step ends: its pipes are closed, and those of the next step get their numbers."""
        heard.append(mine)
        events.remove(other)
        os.close(other)
        again, writing = os.pipe()
        assert again == other
        os.write(writing, b"x")
        events.add(again, lambda: heard.append("next"))
        events.remove(mine)

    first, second = (reading for reading, _ in pipes)
    events.add(first, lambda: replace(first, second))
    events.add(second, lambda: replace(second, first))
    for _, writing in pipes:
        os.write(writing, b"x")
    events.wait(1)
    assert len(heard) == 1
    assert heard[0] in (first, second)
    events.wait(1)
    assert heard[1:] == ["next"]


def test_removing_twice_does_nothing():
    events = DescriptorEvents()
    reading, writing = os.pipe()
    events.add(reading, lambda: None)
    events.remove(reading)
    events.remove(reading)
    os.close(reading)
    os.close(writing)
