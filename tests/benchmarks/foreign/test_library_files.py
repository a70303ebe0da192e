from collections import Counter
from pathlib import Path

from accelopt_benchmarks.foreign.library_files import LibraryFile, LibraryOutcome, read_library_files, rows


def test_both_sets_are_whole_and_apart() -> None:
    files = read_library_files()
    assert Counter(f.set for f in files) == {
        "tuned": 39,
        "lot": 60,
        "lot-2": 16,
        "lot-3": 8,
        "lot-4": 9,
        "lot-5": 5,
        "nki": 35,
        "nki-lot": 14,
        "nki-tests": 41,
    }
    packages = {
        name: {f.package for f in files if f.set == name}
        for name in ("tuned", "lot", "lot-2", "lot-3", "lot-4", "lot-5")
    }
    last = packages["lot-4"] | packages["lot-5"]
    later = packages["lot-2"] | packages["lot-3"] | last
    assert not last & (packages["lot-2"] | packages["lot-3"])
    assert not packages["lot"] & packages["tuned"] | later & (packages["lot"] | packages["tuned"])
    assert all(Path(f.path).suffix == ".py" and not Path(f.path).is_absolute() for f in files)


def test_a_row_counts_files_with_a_number_against_the_goal() -> None:
    file = LibraryFile("p", "p/kernels.py", "lot")
    one = LibraryOutcome(file, "problem", 1, 2, 12.0, "not checked", 3.0, "")
    none = LibraryOutcome(file, "problem", 0, 2, None, "", 3.0, "no problem")
    (row,) = rows([one, none])
    assert (row.value, row.unit, row.met) == (1, "of 2", True)
    (row,) = rows([one, none, none])
    assert row.met is False
