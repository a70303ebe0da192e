"""``model``, and a search that asks one: agreed to first, its ledger last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command import Command
from support.nki_kernels import SILU

from accelopt_lsp.cli.tables import print_ledger
from accelopt_lsp.cli.terminal import out
from accelopt_lsp.models import configured_model, configured_team
from accelopt_lsp.settings.load import load_settings

USER = '[model]\nbase_url = "https://models.example.org/v1"\nmodel = "m"\n'


@pytest.fixture(autouse=True)
def consents(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ACCELOPT_CONSENTS", str(home / "consents.json"))
    return home / "consents.json"


def test_agreeing_and_withdrawing(accelopt: Command, home: Path, consents: Path) -> None:
    assert accelopt("model").code == 1
    (home / "user.toml").write_text(USER)
    answer = accelopt("model")
    assert answer.code == 1
    assert "the whole file that holds the kernel" in answer.err
    assert "https://models.example.org/v1" in answer.err
    assert accelopt("model", "--json").object["agreed"] is False
    assert accelopt("model", "agree").code == 0
    assert json.loads(consents.read_text())["agreed"][0]["workspace"] == str(home)
    assert accelopt("model", "--json").object["agreed"] is True
    assert accelopt("model", "withdraw").code == 0
    assert accelopt("model", "withdraw").code == 1


@pytest.mark.slow
def test_a_search_without_an_agreement_goes_on_without_the_model(accelopt: Command, home: Path) -> None:
    (home / "user.toml").write_text(USER)
    (home / "silu.py").write_text(SILU)
    ended = accelopt("optimize", "silu.py", "--budget", "1", "--json")
    assert ended.object["usage"]["model_calls"] == 0
    assert "is not asked: nobody agreed" in ended.err


@pytest.mark.slow
def test_a_search_ends_with_the_ledger(accelopt: Command, home: Path) -> None:
    """The address is this machine's, so nothing is asked; nobody listens there, and the search says so."""
    (home / "user.toml").write_text(
        '[model]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "gone"\nprice_in = 1\n'
    )
    (home / "silu.py").write_text(SILU)
    ended = accelopt("optimize", "silu.py", "--budget", "30")
    assert "The model gone at http://127.0.0.1:9/v1 cannot be reached. It was tried 3 times." in ended.err
    assert "role" in ended.err
    assert ended.err.strip().splitlines()[-1].split()[:3] == ["all", "1", "1"]


def test_prices_and_what_is_shown_come_from_the_settings(capsys: pytest.CaptureFixture[str]) -> None:
    flags = {"model.base_url": "http://localhost/v1", "model.model": "m", "model.share": "kernel"}
    settings = configured_model(load_settings(flags={**flags, "model.price_in": 2.0, "model.price_out": 8.0}))
    assert settings is not None
    assert (settings.share, settings.price_in, settings.price_out, settings.price_cached) == (
        "kernel",
        2.0,
        8.0,
        None,
    )
    unpriced = configured_model(load_settings(flags=flags))
    assert unpriced is not None
    assert unpriced.money(10, 10) is None
    print_ledger(out(), [])
    assert "all" in capsys.readouterr().out


def test_each_role_has_its_own_model_and_temperature() -> None:
    flags = {
        "model.base_url": "http://localhost/v1", "model.model": "m", "model.temperature": 0.5,
        "model.planner.model": "thinker", "model.coder.temperature": 0.1,
    }  # fmt: skip
    team = configured_team(load_settings(flags=flags))
    assert team is not None
    assert (team.planner.model, team.planner.temperature) == ("thinker", 0.5)
    assert (team.coder.model, team.coder.temperature) == ("m", 0.1)
    assert team.debugger == team.summarizer == configured_model(load_settings(flags=flags))
    assert team.models == "thinker, m"
    wrong = load_settings(flags={"model.planner.temperature": 7.0, "model.coder.modle": "x"})
    assert {(c.name, c.message) for c in wrong.complaints} == {
        ("model.planner.temperature", "must be at most 2, not 7."),
        ("model.coder.modle", "is no setting; did you mean `model.coder.model`?"),
    }


def test_the_editors_models_are_asked_from_the_editor(accelopt: Command, home: Path) -> None:
    (home / "user.toml").write_text('[model]\nbase_url = "editor"\nmodel = "acme/large"\n')
    (home / "silu.py").write_text(SILU)
    assert accelopt("model", "--json").object["address"] == "editor"
    ended = accelopt("optimize", "silu.py", "--instructions", "keep the tiles")
    assert ended.code == 2
    assert "acme/large is the editor's own: it is asked from the editor only" in ended.err


def test_instructions_need_a_model(accelopt: Command, home: Path) -> None:
    (home / "silu.py").write_text(SILU)
    for flags, why in ((["--no-model"], "--no-model was given"), ([], "set model.base_url")):
        ended = accelopt("optimize", "silu.py", "--instructions", "keep the tiles", *flags)
        assert ended.code == 2
        assert why in ended.err


def test_no_keyring_is_said_with_what_to_do_instead(
    accelopt: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    (home / "user.toml").write_text(USER)
    monkeypatch.setattr("click.prompt", lambda *_, **__: "a-key")
    ended = accelopt("model", "key")
    assert ended.code == 3
    assert "ACCELOPT_MODEL_KEY" in ended.err
    assert "a-key" not in ended.out + ended.err
