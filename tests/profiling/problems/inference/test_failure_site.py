"""What is said of an exception, and which statements count as the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelopt_profiling.failure_site import error_text, failure_sites

pytest.importorskip("torch")


def raised(file: Path, text: str) -> BaseException:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(Exception) as caught:
        exec(compile(text, str(file), "exec"), {"shape": (1, 2)})  # noqa: S102
    return caught.value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("assert shape == (\n  2, 1)", "AssertionError: shape == (2, 1) does not hold"),
        ("assert not shape, 'no shape'", "AssertionError: no shape"),
        ("raise KeyError", "KeyError"),
    ],
)
def test_an_assertion_without_a_message_is_its_own_message(tmp_path: Path, text: str, message: str) -> None:
    assert error_text(raised(tmp_path / "k.py", text)) == message


def test_statements_of_a_users_package_called_triton_are_the_users(tmp_path: Path) -> None:
    file = tmp_path / "ops/triton/k.py"
    (site,) = [s for s in failure_sites(raised(file, "assert not shape")) if s.file == str(file)]
    assert site.statement.lineno == 1


def test_statements_of_libraries_are_left_out() -> None:
    import torch

    with pytest.raises(RuntimeError) as caught:
        torch.nn.Linear(2, 2)(torch.ones(3))
    assert not any("/torch/" in s.file for s in failure_sites(caught.value))
