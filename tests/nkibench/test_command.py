"""``accelopt bench nkibench``: what it prints, writes and answers."""

import json

import pytest
from support.synthetic_checkout import kernel, write_checkout

from accelopt_lsp.cli.main import run


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Run the command in an empty folder; its exit code, output and remarks."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def ran(*arguments):
        code = run(["bench", "nkibench", *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return ran


def test_wrong_calls_are_answered_before_anything_runs(command, tmp_path):
    code, _, errors = command("--tasks", "silu,silly")
    assert (code, "no task 'silly'" in errors) == (2, True)
    code, _, errors = command("--target", "trn3")
    assert (code, "trn1 and trn2" in errors) == (2, True)
    code, out, _ = command("--data", str(tmp_path), "--json")
    assert code == 2
    assert "no summary.json" in json.loads(out)["error"]["message"]
    folder = write_checkout(tmp_path)
    (folder / "summary.json").write_text('{"scale":')
    code, _, errors = command("--data", str(folder))
    assert (code, "summary.json:1: not valid JSON" in errors) == (2, True)
    (tmp_path / "file").write_text("")
    code, _, errors = command("--tasks", "silu", "--out", str(tmp_path / "file" / "below"))
    assert (code, "cannot be written" in errors) == (2, True)
    code, _, errors = command("--optimize", "--budget", "many", "--tasks", "silu")
    assert (code, "'many' is no limit" in errors) == (2, True)


@pytest.mark.slow
def test_a_checkout_is_run_reported_and_not_run_again(command, tmp_path):
    folder = write_checkout(tmp_path, ("silu", "wrong"))
    (folder / "kernels/wrong_M256_N512_0.py").write_text(kernel(value="v4"))
    code, out, errors = command("--data", str(folder), "--json", "--out", "results")
    assert code == 1
    data = json.loads(out)
    assert [(t["task"], t["status"]) for t in data["tasks"]] == [("silu", "passed"), ("wrong", "wrong")]
    assert data["geomean_percent_of_peak"]["tasks"] == 1
    assert "silu: passed" in errors
    written = {path.name for path in (tmp_path / "work" / "results").iterdir()}
    assert written == {
        "journal.jsonl", "results.json", "results.md", "published.md", "chart.html", "profile_results.csv",
    }  # fmt: skip
    receipts = [t["receipt"] for t in data["tasks"]]
    code, out, _ = command("--data", str(folder), "--json", "--out", "results", "--tasks", "silu")
    assert code == 0
    assert json.loads(out)["tasks"][0]["receipt"] == receipts[0]  # from the journal
    code, out, errors = command("--data", str(folder), "--out", "results")
    assert code == 1
    rows = [line.split() for line in out.splitlines()]
    assert ["silu", "passed"] in [row[:2] for row in rows]
    assert "wrong: In the case" in out
    assert "over 1 of 2 tasks (estimated)" in out
    assert "chart are in results" in errors


@pytest.mark.slow
def test_a_search_goes_on_from_rules_alone_and_writes_the_best_kernel(command, tmp_path):
    folder = write_checkout(tmp_path, ("silu",))
    slow = kernel().replace(
        "v5 = nl.multiply(v4, v2)", "v6 = nl.exp(v4)\n    v6 = nl.log(v6)\n    v5 = nl.multiply(v4, v2)"
    )
    (folder / "kernels/silu_M256_N512_0.py").write_text(slow)
    code, out, _ = command(
        "--data", str(folder), "--optimize", "--no-model", "--budget", "4", "--json", "--out", "results"
    )
    assert code == 0
    best = json.loads(out)["tasks"][0]["best"]
    assert best["tried"] <= 4
    assert best["reason"]
    assert best["latency"]["us"] <= json.loads(out)["tasks"][0]["latency"]["us"]
    assert (tmp_path / "work/results/silu_M256_N512_best.py").exists() == bool(best["steps"])
