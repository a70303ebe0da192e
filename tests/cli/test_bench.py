"""``accelopt bench``: which benchmarks there are, in a checkout and without one."""

from __future__ import annotations

import pytest
from support.command import Command

from accelopt_lsp.cli import bench

OWN = ("device", "gate", "hosts", "search", "self")


def test_a_checkout_has_the_projects_own_benchmarks(accelopt: Command) -> None:
    help_text = accelopt("bench", "--help").out
    assert [
        name for name in (*OWN, "nkibench", "kernelbench", "flashinfer") if f"\n  {name} " not in help_text
    ] == []


@pytest.mark.parametrize("arguments", [(), ("--json",), ("--examples", "x", "more")])
@pytest.mark.parametrize("name", OWN)
def test_without_a_checkout_they_say_so_in_one_line(
    accelopt: Command, monkeypatch: pytest.MonkeyPatch, name: str, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setattr(bench, "OWN_PACKAGE", "a_package_that_is_not_there")
    ended = accelopt("bench", name, *arguments)
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert f"`accelopt bench {name}`" in ended.err
    assert "needs a checkout" in ended.err
    if "--json" in arguments:
        assert ended.object["error"]["exit"] == 2


def test_without_a_checkout_they_are_not_listed(accelopt: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "OWN_PACKAGE", "a_package_that_is_not_there")
    help_text = accelopt("bench", "--help").out
    assert [name for name in OWN if f"\n  {name} " in help_text] == []
    assert "\n  nkibench " in help_text


def test_a_name_close_to_a_benchmark_is_suggested(accelopt: Command) -> None:
    ended = accelopt("bench", "nkibenc")
    assert ended.code == 2
    assert "Did you mean 'nkibench'?" in ended.err
