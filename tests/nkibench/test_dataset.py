"""AccelOpt's files from a checkout: what is read, and what each fault says. The other operators always go on."""

import csv
import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.synthetic_checkout import operator, write_checkout

from nkibench.dataset import DatasetError, read_dataset
from nkibench.report import row_of, write_profiles


@pytest.fixture
def checkout(tmp_path):
    return write_checkout(tmp_path)


def test_a_checkout_is_read_as_accelopt_names_it(checkout):
    dataset = read_dataset(checkout.parent)  # the checkout's own folder, or NKIBench in it
    assert dataset == read_dataset(checkout)
    assert dataset.faults == []
    first = dataset.ready[0]
    assert (first.name, first.case_id, first.values) == ("scale", "2", {"N": 512, "M": 256})
    assert (first.case_name, first.service_name) == ("scale_M256_N512", "scale_M256_N512_ID0")
    assert first.kernel == checkout / "kernels/scale_M256_N512_0.py"
    assert [s.name for s in read_dataset(checkout, ["other"]).ready] == ["other"]


def test_an_operator_of_a_known_name_has_its_published_peak(tmp_path):
    checkout = write_checkout(tmp_path, ("silu",))
    assert read_dataset(checkout).ready[0].task.name == "silu"


UNUSABLE = {
    "cut off": ('{\n "scale": {\n  "seed": "./se', r"summary.json:3: .*ends too early"),
    "not JSON": ('{\n "scale" 1}', r"summary.json:2: not valid JSON"),
    "a list": ("[]", r"summary.json:1: .*object of operators, not a list"),
    "nested": ("[" * 100_000, "nested too deeply"),
    "empty": ("", "ends too early"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_summary_that_cannot_be_used_is_named_with_its_line(checkout, name):
    text, words = UNUSABLE[name]
    (checkout / "summary.json").write_text(text)
    with pytest.raises(DatasetError, match=words):
        read_dataset(checkout)


def test_a_summary_that_is_no_text(checkout):
    (checkout / "summary.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(DatasetError, match="not UTF-8"):
        read_dataset(checkout)


def test_a_folder_without_a_summary(tmp_path):
    with pytest.raises(DatasetError, match=r"no summary.json"):
        read_dataset(tmp_path)
    with pytest.raises(DatasetError, match=r"no operator 'bmm'; it has scale, other"):
        read_dataset(write_checkout(tmp_path), ["bmm"])


FAULTY = {
    "no cases": ({"seed": "x"}, 'no "cases"'),
    "no object": (5, 'no "cases"'),
    "text for a value": ({"cases": {"0": {"values": {"M": "256"}, "impls": []}}}, '"values" that are whole numbers'),
    "no values": ({"cases": {"0": {"impls": []}}}, '"values"'),
    "no impls": ({"cases": {"0": {"values": {"M": 1}}}}, 'no "impls"'),
    "impl without kernel": ({"cases": {"0": {"values": {"M": 1}, "impls": [{"task": "./a.py"}]}}}, 'no "kernel"'),
    "outside": (
        {"cases": {"0": {"values": {"M": 1}, "impls": [{"task": "../../a.py", "kernel": "./k.py"}]}}}, "outside",
    ),
    "missing file": (operator("absent"), "does not exist"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_operator_is_told_and_the_others_go_on(checkout, name):
    data, words = FAULTY[name]
    summary = {"faulty": data, **json.loads((checkout / "summary.json").read_text())}
    (checkout / "summary.json").write_text(json.dumps(summary))
    dataset = read_dataset(checkout)
    assert [s.name for s in dataset.ready] == ["scale", "other"]
    assert [f.name for f in dataset.faults] == ["faulty"]
    assert words in str(dataset.faults[0])
    assert str(checkout) in str(dataset.faults[0])


def test_a_reference_that_lacks_a_function_is_named_with_its_line(checkout):
    path = checkout / "reference/scale_M256_N512_numpy_2.py"
    path.write_text(path.read_text().replace("def transform_nki_outputs", "def transform_outputs"))
    dataset = read_dataset(checkout)
    assert [s.name for s in dataset.ready] == ["other"]
    assert "`transform_nki_outputs`" in str(dataset.faults[0])
    assert f"{path}:{dataset.faults[0].line}:" in str(dataset.faults[0])


def test_a_reference_that_does_not_parse_is_named_with_its_line(checkout):
    path = checkout / "reference/scale_M256_N512_numpy_2.py"
    path.write_text("import numpy as np\ndef forward(:\n")
    assert str(read_dataset(checkout).faults[0]).startswith(f"{path}:2: ")


def unprivileged(action):
    """Run ``action`` as nobody, since root may read everything."""
    if os.geteuid() != 0:
        return action()
    os.seteuid(65534)
    try:
        return action()
    finally:
        os.seteuid(0)


def test_a_folder_without_read_permission_is_said_and_the_others_go_on(checkout, tmp_path):
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid():
            folder.chmod(folder.stat().st_mode | 0o055)
    closed = checkout / "closed"
    closed.mkdir()
    (closed / "k.py").write_text("")
    impls = [{"task": "./closed/k.py", "kernel": "./kernels/scale_M256_N512_0.py"}]
    summary = json.loads((checkout / "summary.json").read_text())
    summary["closed"] = {"cases": {"0": {"values": {"M": 1}, "impls": impls}}}
    (checkout / "summary.json").write_text(json.dumps(summary))
    closed.chmod(0)
    try:
        dataset = unprivileged(lambda: read_dataset(checkout))
    finally:
        closed.chmod(0o755)
    assert [s.name for s in dataset.ready] == ["scale", "other"]
    assert "Permission denied" in str(dataset.faults[0])
    assert str(closed / "k.py") in str(dataset.faults[0])


def test_a_data_set_without_read_permission_is_said(checkout, tmp_path):
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid():
            folder.chmod(folder.stat().st_mode | 0o055)
    checkout.chmod(0)

    def read():
        with pytest.raises(DatasetError, match=r"may not be read|no summary.json|Permission denied"):
            read_dataset(checkout)

    try:
        unprivileged(read)
    finally:
        checkout.chmod(0o755)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["cases", "values", "impls", "task", "kernel", "0"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(data=st.dictionaries(st.text(min_size=1, max_size=4), json_values, max_size=3))
def test_no_summary_whatsoever_ends_the_reading(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("any")
    (folder / "summary.json").write_text(json.dumps(data))
    dataset = read_dataset(folder)
    assert {f.name for f in dataset.faults} <= set(data)
    assert dataset.ready == []


# profile_results.csv

PROFILE = {
    "latency": 4.221777,
    "min_ms": 4.218,
    "max_ms": 4.226,
    "rel_diffs": 0.0018,
    "hbm_read_bytes": 141623296,
}


def test_profiles_are_written_as_accelopt_writes_them(checkout, tmp_path):
    subjects = read_dataset(checkout).ready
    path = tmp_path / "profile_results.csv"
    write_profiles(path, [row_of(subject, PROFILE) for subject in subjects])
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert " ".join(rows[0]) == "problem values case_id task kernel case_name service_name profile"
    assert json.loads(rows[0]["values"]) == {"N": 512, "M": 256}
    assert [json.loads(row["profile"]) for row in rows] == [PROFILE, PROFILE]
    assert rows[1]["service_name"] == "other_M256_N512_ID0"
