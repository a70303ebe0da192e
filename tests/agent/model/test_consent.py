"""Nothing is sent before somebody agreed, and no key is written anywhere."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import keyring
import keyring.backend
import pytest
from support.played_model import error, playing, says
from support.toy_search import TEXT, WIDE, ToyCost, ToyGate, ToyProposer, request

from accelopt_agent.events import ProgressText
from accelopt_agent.model.client import ModelCallError, query_model
from accelopt_agent.model.consent import (
    Consent,
    ConsentStore,
    address_of,
    is_loopback,
    required_consent,
    what_is_sent,
)
from accelopt_agent.model.keys import KEYRING_SERVICE, api_key, keep_key
from accelopt_agent.model.proposer import ModelProposer
from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.optimize import drive
from accelopt_agent.search.budget import Meter
from accelopt_memory.export_file import export_memory
from accelopt_memory.memory import Memory

HOSTED = ModelSettings("https://me:secret@models.example.org:8443/v1", "m")


def test_an_agreement_is_for_one_workspace_one_address_and_so_much(tmp_path: Path) -> None:
    consents = ConsentStore(tmp_path / "data" / "consents.json")
    here, there = tmp_path / "here", tmp_path / "there"
    assert "nobody agreed" in (consents.missing(HOSTED, here) or "")
    kernel_only = ModelSettings(HOSTED.base_url, "m", share="kernel")
    consents.give(required_consent(kernel_only, here))
    assert consents.missing(kernel_only, here) is None
    assert consents.missing(HOSTED, here) is not None  # the whole file is more than was agreed to
    consents.give(required_consent(HOSTED, here))
    assert consents.missing(HOSTED, here) is consents.missing(kernel_only, here) is None
    assert consents.missing(HOSTED, there) is not None
    assert consents.missing(ModelSettings("https://other.example.org/v1", "m"), here) is not None
    assert "secret" not in consents.path.read_text()
    assert consents.withdraw(required_consent(HOSTED, here))
    assert not consents.withdraw(required_consent(HOSTED, here))
    assert consents.missing(HOSTED, here) is not None


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://localhost:11434/v1", True),
        ("http://127.0.0.1:8000", True),
        ("http://[::1]:8000/v1", True),
        ("http://localhost.example.org/v1", False),
        ("http://127.0.0.1.example.org/v1", False),
        ("http://127.0.0.1@example.org/v1", False),
        ("http://192.168.1.5:8000/v1", False),
        ("https://models.example.org/v1", False),
    ],
)
def test_only_the_loopback_needs_no_agreement(url: str, here: bool, tmp_path: Path) -> None:
    assert is_loopback(url) == here
    assert (ConsentStore(tmp_path / "c.json").missing(ModelSettings(url, "m"), tmp_path) is None) == here


def test_a_key_is_sent_to_an_address_that_was_agreed_to_with_it_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also to this machine's: a project may name a port of it, and any variable."""
    consents = ConsentStore(tmp_path / "c.json")
    here, hosted = ModelSettings("http://127.0.0.1:8000/v1", "m", key_variable="AWS_KEY"), HOSTED
    consents.give(required_consent(hosted, tmp_path))
    assert consents.missing(here, tmp_path) is consents.missing(hosted, tmp_path) is None
    monkeypatch.setenv("AWS_KEY", "secret")
    monkeypatch.setenv(hosted.key_variable, "secret")
    assert "the key in AWS_KEY" in (consents.missing(here, tmp_path) or "")
    assert f"the key in {hosted.key_variable}" in (consents.missing(hosted, tmp_path) or "")
    consents.give(required_consent(here, tmp_path))
    assert consents.missing(here, tmp_path) is None
    assert consents.missing(replace(here, key_variable=hosted.key_variable), tmp_path) is not None
    assert consents.missing(replace(here, base_url="http://127.0.0.1:9000/v1"), tmp_path) is not None
    assert what_is_sent("kernel", "AWS_KEY")[-1] == "the key in AWS_KEY"
    assert "secret" not in consents.path.read_text()


@pytest.mark.parametrize("url", ["http://models.example.org/v1", "http://10.0.0.1:8000/v1", "HTTP://x/v1"])
async def test_nothing_is_sent_unencrypted_beyond_this_machine(url: str) -> None:
    with pytest.raises(ModelCallError, match="is not encrypted"):
        await query_model(ModelSettings(url, "m"), "system", "user")


async def test_a_redirect_is_not_followed() -> None:
    """It would carry the code to an address that nobody agreed to."""
    with (
        playing([says("ok")]) as other,
        playing([error(307, "moved", Location=f"{other.url}/chat/completions")]) as played,
        pytest.raises(ModelCallError),
    ):
        await query_model(ModelSettings(played.url, "m", attempts=1), "system", "user", backoff_seconds=0.001)
    assert played.asked
    assert not other.asked


def test_addresses_are_kept_without_what_they_may_hold_in_secret() -> None:
    assert address_of(HOSTED.base_url) == "https://models.example.org:8443"
    assert address_of("http://[::1]:8000/v1?key=x") == "http://[::1]:8000"


@pytest.mark.parametrize(
    "text", ["", "[]", '{"agreed": 3}', '{"agreed": [{"workspace": "/"}]}', '{"agreed": ["x"]}']
)
def test_a_broken_file_of_agreements_agrees_to_nothing(text: str, tmp_path: Path) -> None:
    consents = ConsentStore(tmp_path / "c.json")
    consents.path.write_text(text)
    assert consents.all() == []
    consents.give(Consent("/w", "http://x", "file"))
    assert consents.all() == [Consent("/w", "http://x", "file")]


async def test_a_model_that_may_see_the_kernel_only_is_sent_nothing_else() -> None:
    text = "SECRET = 'of the file'\n" + TEXT
    with playing([says("Make it wide.")]) as played:
        settings = ModelSettings(played.url, "toy-model", share="kernel")
        events = drive(
            request(text), ToyCost(text), ToyGate(), None, "toy",
            lambda meter: [ModelProposer(settings, meter, "trn1", backoff_seconds=0.001)],
        )  # fmt: skip
        _ = [event async for event in events]
    assert played.asked
    for question in played.asked:
        assert "SECRET" not in str(question)
        assert "time_us = 100" in str(question)
    assert "without the rest of the file" in what_is_sent("kernel")[0]


@pytest.mark.parametrize("lines", ["8-9", "1", "1-9", "14-15"])
async def test_no_plan_makes_more_of_the_file_leave(lines: str) -> None:
    """A planner that names lines which it was not shown does not get them shown to the coder, nor imports or launches
    with them."""
    text = "import SECRET\n" + TEXT + "\nkernel[SECRET](1)\n"
    wide = "<<<<<<< CHANGE 1\n    time_us = 60\n    wide = 7\n>>>>>>>"
    with playing([says(f"LINES {lines}\nMake it wide."), says(wide)]) as played:
        settings = ModelSettings(played.url, "toy-model", share="kernel")
        events = drive(
            request(text), ToyCost(text), ToyGate(), None, "toy",
            lambda meter: [ModelProposer(settings, meter, "trn1", backoff_seconds=0.001)],
        )  # fmt: skip
        messages = [event.text async for event in events if isinstance(event, ProgressText)]
    inside = lines == "8-9"
    assert all("SECRET" not in str(question) for question in played.asked)
    assert inside or any("was not shown" in line for line in messages)


async def test_no_key_is_in_anything_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The server repeats the key in its answers and errors; the memory, the log and the output stay without."""
    key = "toy-key-3141592653"
    monkeypatch.setenv("TOY_KEY", key)
    handler = logging.FileHandler(tmp_path / "log.txt")
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        replies = [says("Plan it."), error(403, f"the key {key} is barred")]
        with playing(replies) as played, Memory.open(tmp_path / "memory.db") as memory:
            settings = ModelSettings(played.url, "toy-model", key_variable="TOY_KEY")

            def proposers(meter: Meter) -> list[ToyProposer | ModelProposer]:
                return [ToyProposer(WIDE), ModelProposer(settings, meter, "trn1", backoff_seconds=0.001)]

            events = [e async for e in drive(request(), ToyCost(), ToyGate(), memory, "toy", proposers)]
            print(events)
            export_memory(memory, tmp_path / "export.jsonl")
            assert any(h["authorization"] == f"Bearer {key}" for h in played.headers)
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
        handler.close()
    written = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {"log.txt", "memory.db", "export.jsonl"} <= written.keys()
    assert b"HTTP" in written["log.txt"]
    for name, content in written.items():
        assert key.encode() not in content, name
    out, err = capfd.readouterr()
    assert "is barred" in out
    assert key not in out + err


def test_keys_come_from_the_environment_then_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    passwords: dict[tuple[str, str], str] = {}

    class Ring(keyring.backend.KeyringBackend):
        priority = 1.0  # type: ignore[assignment]

        def get_password(self, service: str, username: str) -> str | None:
            return passwords.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            passwords[service, username] = password

    before = keyring.get_keyring()
    keyring.set_keyring(Ring())
    try:
        settings = ModelSettings("http://x/v1", "m", key_variable="TOY_KEY")
        assert api_key(settings, {}) is None
        assert keep_key("http://x/v1", "from the ring")
        assert passwords == {(KEYRING_SERVICE, "http://x/v1"): "from the ring"}
        assert api_key(settings, {}) == "from the ring"
        assert api_key(settings, {"TOY_KEY": " from the environment "}) == "from the environment"
        assert api_key(ModelSettings("http://y/v1", "m"), {}) is None
    finally:
        keyring.set_keyring(before)
