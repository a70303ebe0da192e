from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accelopt_lsp.settings.approvals import Approvals
from accelopt_lsp.settings.load import Settings, load_settings
from accelopt_lsp.settings.schema import all_settings
from accelopt_lsp.settings.trust import Workspace
from accelopt_memory.location import NOWHERE
from accelopt_profiling.kernels import find_kernels

Load = Callable[..., Settings]

TRUSTED, RESTRICTED = Workspace(trusted=frozenset({Path("/")})), Workspace(restricted=True)


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads the settings of ``project/kernels/k.py``; ``user`` and ``project`` are the texts of the two files. The
    person has ``approved`` what the project's says."""

    def loaded(
        user: str | None = None,
        project: str | None = None,
        environ: dict[str, str] | None = None,
        name: str = "accelopt.toml",
        approved: bool = True,
        **more: Any,
    ) -> Settings:
        (tmp_path / "project" / "kernels").mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / ".git").mkdir(exist_ok=True)
        if user is not None:
            (tmp_path / "user.toml").write_text(user)
        if project is not None:
            (tmp_path / "project" / name).write_text(project)
        approvals = tmp_path / "approvals.json"
        variables = {"ACCELOPT_CONFIG": str(tmp_path / "user.toml"), "ACCELOPT_APPROVALS": str(approvals)}
        variables |= environ or {}
        file = tmp_path / "project" / "kernels" / "k.py"
        settings = load_settings(file, environ=variables, **more)
        if approved and settings.unapproved is not None:
            Approvals(approvals).give(settings.unapproved.folder, settings.unapproved.values)
            settings = load_settings(file, environ=variables, **more)
        return settings

    return loaded


def test_the_defaults_hold_where_nobody_says_anything(load: Load, tmp_path: Path) -> None:
    result = load()
    assert (result.target.triton, result.target.nki, result.host) == ("h100", "", "local")
    assert result.complaints == ()
    assert result.origins == {}
    assert not result.asks_models
    assert result.project_root == tmp_path / "project"
    assert result.job_limits.seconds == 60.0
    assert result.job_limits.memory_bytes == 12 << 30


def test_each_layer_goes_over_the_one_before(load: Load) -> None:
    texts = [f'[target]\ntriton = "{name}"' for name in ("a100", "b200")]
    environ = {"ACCELOPT_TARGET_TRITON": "h200"}
    editor, flags = {"target": {"triton": "l40s"}}, {"target.triton": "mi300x"}
    assert load(texts[0]).target.triton == "a100"
    assert load(*texts).target.triton == "b200"
    assert load(*texts, environ).target.triton == "h200"
    assert load(*texts, environ, editor=editor).target.triton == "l40s"
    result = load(*texts, environ, editor=editor, flags=flags)
    assert result.target.triton == "mi300x"
    assert result.origins["target.triton"] == "the command line"
    assert load(*texts, environ, flags={"target.triton": None}).target.triton == "h200"


@pytest.mark.parametrize(
    ("project", "name"),
    [
        ("[limits]\nseconds = 'long'", "limits.seconds"),
        ("[limits]\nseconds = -1", "limits.seconds"),
        ("[limits]\nseconds = nan", "limits.seconds"),
        ("[limits]\nmemory_mb = 1.5", "limits.memory_mb"),
        ("[limits]\nmemory_mb = true", "limits.memory_mb"),
        ("[editor]\nlens = 'yes'", "editor.lens"),
        ("[editor]\nprofile_on = 'typing'", "editor.profile_on"),
        ("[model]\nbase_url = 'ftp://x'", "model.base_url"),
        ("[target]\ntriton = 'a b'", "target.triton"),
        ("[target]\ntriton = 'trn2'", "target.triton"),
        ("[target]\nnki = 'h100'", "target.nki"),
        ("[target]\nnki = 'moon'", "target.nki"),
        ("problem = 3", "problem"),
        ("problem = {'a.py' = 1}", "problem"),
    ],
)
def test_a_wrong_value_is_reported_once_and_the_layer_below_is_used(
    load: Load, project: str, name: str
) -> None:
    below, result = load(), load(project=project)
    assert [c.name for c in result.complaints] == [name]
    assert "accelopt.toml" in result.complaints[0].layer
    table, _, key = name.partition(".")
    assert getattr(result, table) == getattr(below, table)
    assert name not in result.origins
    assert str(result.complaints[0]).count(name) == 1
    assert key or table == "problem"


def test_a_wrong_setting_in_one_layer_leaves_the_others(load: Load) -> None:
    result = load(
        "[limits]\nseconds = 9", "[limits]\nseconds = 'x'\noutput_kb = 5", {"ACCELOPT_LIMITS_OUTPUT_KB": "?"}
    )
    assert (result.limits.seconds, result.limits.output_kb) == (9.0, 5)
    assert [c.layer.split(" (")[0] for c in result.complaints] == [
        "the project's settings",
        "the environment",
    ]


@pytest.mark.parametrize(
    ("environ", "hint"),
    [
        ({"ACCELOPT_TARGT_NKI": "x"}, "`ACCELOPT_TARGET_NKI`"),
        ({"ACCELOPT_LIMITS_SECONDS": "soon"}, "must be a number"),
        ({"ACCELOPT_LIMITS_MEMORY_MB": "1.5"}, "must be a number"),
        ({"ACCELOPT_EDITOR_LENS": "perhaps"}, "true or false"),
    ],
)
def test_wrong_variables_are_reported(load: Load, environ: dict[str, str], hint: str) -> None:
    result = load(environ=environ)
    assert [c.layer for c in result.complaints] == ["the environment"]
    assert hint in str(result.complaints[0])


def test_variables_are_read_as_their_type(load: Load) -> None:
    result = load(
        environ={
            "ACCELOPT_LIMITS_SECONDS": "2.5",
            "ACCELOPT_LIMITS_MEMORY_MB": "128",
            "ACCELOPT_EDITOR_LENS": "off",
            "ACCELOPT_EDITOR_HINTS": "",
            "ACCELOPT_DB": "/m.db",
            "ACCELOPT_MEMORY_PATH": "/other.db",
            "ACCELOPT_MODEL_KEY": "secret",
        }
    )
    assert result.complaints == ()
    assert (result.limits.seconds, result.limits.memory_mb) == (2.5, 128)
    assert (result.editor.lens, result.editor.hints) == (False, True)
    assert result.memory_path == Path("/m.db")


def test_a_projects_memory_is_read_where_a_person_trusts_the_project(load: Load, tmp_path: Path) -> None:
    project = '[memory]\nmode = "project"'
    result = load(project=project)
    assert (result.memory.mode, result.memory_project) == ("project", result.project_root)
    assert result.memory_path.parent.name == "projects"
    assert load(project=project, environ={"ACCELOPT_DB": "/m.db"}).memory_path.parent == Path("/projects")
    for other in (
        load(project=project, workspace=RESTRICTED),
        load(user=project, project="", workspace=RESTRICTED),
    ):
        assert (other.memory.mode, other.memory_project) == ("local", None)
    assert load(user='[memory]\nmode = "off"').memory_path == NOWHERE


def test_an_unknown_name_is_reported_with_the_nearest(load: Load) -> None:
    result = load(project="[target]\nnky = 'trn2'\n[unknown]\nthing = 1")
    assert [c.name for c in result.complaints] == ["target.nky", "unknown.thing"]
    assert "`target.nki`" in result.complaints[0].message


@pytest.mark.parametrize("where", ["user", "project"])
@pytest.mark.parametrize(
    "name", ["api_key", "model.api_key", "model.token", "hosts.lab.password", "x.secret"]
)
def test_no_file_holds_a_key(load: Load, where: str, name: str) -> None:
    result = load(**{where: f'{name} = "sk-123"'})
    assert "no file holds one" in result.complaints[0].message
    assert "sk-123" not in "".join(map(str, result.complaints))
    assert "sk-123" not in repr(result)


def test_a_key_among_a_hosts_variables_is_taken_out(load: Load) -> None:
    result = load(project='[hosts.lab]\nssh = "me@lab"\nenv = {A = "1", HF_TOKEN = "hf_1"}')
    assert result.hosts["lab"].env == {"A": "1"}
    assert [c.name for c in result.complaints] == ["hosts.lab.env.HF_TOKEN"]


def test_hosts_are_tables(load: Load) -> None:
    result = load(
        user='[hosts.big]\nssh = "big"\npython = "/opt/python"',
        project='host = "lab"\n[hosts.lab]\nssh = "me@lab"\n'
        '[hosts.empty]\npython = "x"\n[hosts.bad]\nssh = "-oProxy=x"',
    )
    assert result.host == "lab"
    assert sorted(result.hosts) == ["big", "lab"]
    assert result.hosts["big"].python == "/opt/python"
    assert result.hosts["lab"].python == "python3"
    assert {c.name for c in result.complaints} == {"hosts.empty", "hosts.bad.ssh"}


def test_an_unknown_host_is_reported_and_kernels_run_here(load: Load) -> None:
    result = load(environ={"ACCELOPT_HOST": "moon"})
    assert result.host == "local"
    assert "[hosts.moon]" in result.complaints[0].message


SENSITIVE = """
host = "lab"
python = "/evil/python"
problem = "p.py"
[hosts.lab]
ssh = "me@lab"
[model]
base_url = "https://evil"
model = "m"
[memory]
path = "/evil.db"
[target]
nki = "trn2"
"""


@pytest.mark.parametrize(
    ("url", "is_taken"),
    [
        ("https://models.example.org/v1", True),
        ("http://localhost:11434/v1", True),
        ("http://127.0.0.1:8000", True),
        ("http://[::1]:8000/v1", True),
        ("http://models.example.org/v1", False),
        ("http://localhost.example.org/v1", False),
        ("http://127.0.0.1@example.org/v1", False),
        ("http://localhost:80@example.org/v1", False),
    ],
)
def test_a_models_address_is_encrypted_unless_it_is_this_machine(
    load: Load, url: str, is_taken: bool
) -> None:
    assert bool(load(user=f'[model]\nbase_url = "{url}"').model.base_url) == is_taken


def test_only_the_person_names_the_variable_of_the_key(load: Load) -> None:
    result = load(project='[model]\napi_key_env = "AWS_SECRET_ACCESS_KEY"')
    assert result.model.api_key_env == "ACCELOPT_MODEL_KEY"
    assert "your own settings" in str(result.complaints[0])
    assert load(user='[model]\napi_key_env = "MY_KEY"', project="").model.api_key_env == "MY_KEY"


def test_an_untrusted_workspace_names_no_host_command_model_or_file(load: Load) -> None:
    editor = {"model": {"baseUrl": "https://evil", "model": "m"}, "python": "/evil", "target.triton": "a100"}
    result = load(project=SENSITIVE, editor=editor, workspace=RESTRICTED)
    below = load(workspace=RESTRICTED, project="")
    for name in ("host", "hosts", "python", "model", "memory"):
        assert getattr(result, name) == getattr(below, name)
    assert "evil" not in repr(result)
    assert (result.target.nki, result.target.triton) == ("trn2", "a100"), "harmless settings stay"
    mine = load(user=SENSITIVE, project="", workspace=RESTRICTED)
    assert (mine.host, mine.model.model) == ("lab", "m"), "the person's own file is theirs"
    assert load(project=SENSITIVE).python == "/evil/python"


def test_what_a_project_makes_run_is_approved_once_per_folder_and_content(load: Load, tmp_path: Path) -> None:
    result = load(project=SENSITIVE, approved=False)
    below = load(project="", approved=False)
    for name in ("host", "hosts", "python", "model", "memory"):
        assert getattr(result, name) == getattr(below, name)
    assert result.target.nki == "trn2", "harmless settings need no approval"
    unapproved = load(project=SENSITIVE, approved=False, workspace=TRUSTED).unapproved
    assert unapproved is not None, "an editor that trusts the workspace did not see its settings"
    assert {"python", "host", "model.base_url", "hosts.lab.ssh"} <= set(unapproved.values)
    assert load(project=SENSITIVE).python == "/evil/python"
    assert load(project=SENSITIVE, approved=False).python == "/evil/python", "it is remembered"
    changed = SENSITIVE.replace("/evil/python", "/worse/python")
    assert load(project=changed, approved=False).python == "", "another content is asked about again"
    assert load(project=SENSITIVE, approved=False, workspace=RESTRICTED).python == ""
    assert (
        load(
            project=SENSITIVE, name="pyproject.toml", approved=False, environ={"ACCELOPT_PYTHON": "p"}
        ).python
        == "p"
    )
    Approvals(tmp_path / "approvals.json").withdraw(tmp_path / "project")
    assert load(project=SENSITIVE, approved=False).python == ""


def test_every_setting_of_the_schema_has_its_trust_decided() -> None:
    harmless = {n for n, s in all_settings().items() if not s.sensitive}
    assert not any(n.startswith(("host", "model", "python", "memory")) for n in harmless)


def test_editors_may_write_camel_case(load: Load) -> None:
    editor = {
        "model": {"baseUrl": "http://localhost/v1", "model": "m", "apiKeyEnv": "K"},
        "editor.profileOn": "save",
        "limits": {"memoryMb": 100},
        "hosts": {"myLab": {"ssh": "me@lab", "env": {"someName": "1"}}},
        "problem": {"myKernel.py": "myProblem.py"},
    }
    result = load(editor=editor)
    assert result.complaints == ()
    assert result.asks_models
    assert result.editor.profile_on == "save"
    assert result.limits.memory_mb == 100
    assert result.hosts["myLab"].env == {"someName": "1"}


def test_problems_are_relative_to_the_file_that_names_them(load: Load, tmp_path: Path) -> None:
    assert load(project="problem = 'p.py'").problem == "p.py"
    assert load(user="problem = 'p.py'", project="").problem == str(tmp_path / "p.py")
    result = load(flags={"problem": "p.py"})
    assert result.problem == str(Path.cwd() / "p.py")
    table = load(project="problem = {'kernels/k.py' = 'k_problem.py'}").problem
    assert table == {"kernels/k.py": "k_problem.py"}


def test_pyproject_counts_when_it_has_our_table(load: Load, tmp_path: Path) -> None:
    result = load(
        project="[project]\nname = 'x'\n[tool.accelopt.target]\nnki = 'trn2'", name="pyproject.toml"
    )
    assert result.target.nki == "trn2"
    (tmp_path / "project" / "kernels" / "pyproject.toml").write_text("[project]\nname = 'inner'")
    assert load().target.nki == "trn2", "one without our table is passed over"
    (tmp_path / "project" / "kernels" / "pyproject.toml").write_text("[tool\n")
    assert load().target.nki == "trn2", "and so is one that does not parse"
    load(project="[target]\nnki = 'trn3'")
    assert load().target.nki == "trn3", "accelopt.toml wins in one folder"
    assert load(project="[tool]\naccelopt = 3", name="pyproject.toml").complaints == ()


def test_the_search_ends_at_the_repository(load: Load, tmp_path: Path) -> None:
    (tmp_path / "accelopt.toml").write_text("[target]\nnki = 'outside'")
    assert load().target.nki == ""


@pytest.mark.parametrize("content", [b"[target", b"\xff\xfe", b"a = 1\na = 2", b"#" * ((1 << 20) + 1)])
def test_a_file_that_cannot_be_read_is_reported(load: Load, tmp_path: Path, content: bytes) -> None:
    load()
    (tmp_path / "project" / "accelopt.toml").write_bytes(content)
    result = load()
    assert len(result.complaints) == 1
    assert str(tmp_path / "project" / "accelopt.toml") in str(result.complaints[0])
    assert result.target.nki == ""


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from([*all_settings(), "hosts", "hosts.a", "hosts.a.ssh", "model", "limits", "x", ""])


@pytest.mark.slow
@settings(max_examples=150)
@given(st.dictionaries(names, plain, max_size=5))
def test_whatever_an_editor_sends_gives_settings(values: dict[str, Any]) -> None:
    result = load_settings(environ={"ACCELOPT_CONFIG": "/nonexistent/user.toml"}, editor=values)
    assert isinstance(result, Settings)


@pytest.mark.parametrize(
    ("package", "expected"), [("nki", "trn2"), ("neuronxcc.nki", "trn1"), ("neuronxcc import nki", "trn1")]
)
def test_the_default_target_follows_the_package_of_the_kernels(
    load: Load, package: str, expected: str
) -> None:
    line = f"from {package}" if " " in package else f"import {package} as nki"
    by_decorator = f"{line}\n\n@nki.jit\ndef scale(x):\n    return x\n"
    by_call = f"{line}\n\ndef scale(x):\n    return x\n\nscale = nki.benchmark(warmup=1)(scale)\n"
    for text in (by_decorator, by_call):
        kernels = find_kernels(text).kernels
        assert load().targets(kernels)["nki"] == expected
        assert load(flags={"target.nki": "trn3"}).targets(kernels)["nki"] == "trn3"


def test_microscaling_kernels_are_for_the_core_that_has_it(load: Load) -> None:
    head = "import nki\nimport nki.isa as nisa\n\n\ndef turn(x):\n    nisa.quantize_mx(x, x, x)\n\n\n"
    text = f"{head}@nki.jit\ndef both(x):\n    turn(x)\n\n\n@nki.jit\ndef plain(x):\n    return x\n"
    both, plain_kernel = find_kernels(text).kernels
    assert load().targets([both])["nki"] == "trn3"
    assert load().targets([plain_kernel])["nki"] == "trn2"
    assert load(flags={"target.nki": "trn2"}).targets([both])["nki"] == "trn2"
