"""Every row of SECURITY.md names its tests, and they exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def missing(text, root=ROOT):
    """Rows without a test, files that are not there, and names that no file of the row defines."""
    found = []
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows[0] == "| covered | by | tests |"
    for row in rows[2:]:
        _, covered, _, tests, _ = row.split("|")
        names = re.findall(r"`(test_\w+)`", tests)
        files = re.findall(r"`((?:tests|benchmarks)/[\w/]+\.py)`", tests)
        found += [f"{covered.strip()}: {file}" for file in files if not (root / file).is_file()]
        code = "".join((root / file).read_text() for file in files if (root / file).is_file())
        found += [f"{covered.strip()}: {name}" for name in names if f"def {name}(" not in code]
        if not names:
            found.append(f"{covered.strip()}: no test")
    # Outside of the table too.
    found += [
        file for file in re.findall(r"`(\w+/[\w/]+\.py)`", text)
        if not ((root / file).is_file() or (root / "python/psinoise" / file).is_file())
    ]  # fmt: skip
    return found


def test_every_row_names_tests_that_exist():
    assert not missing((ROOT / "SECURITY.md").read_text())


def test_a_row_without_a_test_would_be_seen():
    table = "| covered | by | tests |\n| --- | --- | --- |\n"
    assert missing(table + "| seeds | luck | none |") == ["seeds: no test"]
    assert missing(table + "| a | b | `test_x` in `tests/test_docs.py` |") == ["a: test_x"]
    assert missing(table + "| a | b | `test_missing` in `tests/none.py` |")
