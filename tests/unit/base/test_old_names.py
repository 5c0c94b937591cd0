"""Names that README, docs and examples used before modules moved: they go on working."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from rlmm.base.old_names import MODULES, NAMES
from tests.support.repository import tree

DOCUMENTED = [
    line.split() for line in tree.read(Path("tests/data/documented_names.txt")).splitlines()
]
"""Module, and where one was named its attribute, as the documents of 0.1.0 had them."""


def resolve(module: str, *names: str) -> object:
    found = importlib.import_module(module)
    return getattr(found, names[0]) if names else found


@pytest.mark.parametrize("name", DOCUMENTED, ids=".".join)
def test_documented_name_works_and_warns(name: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An old name gives the object of its new place, which the warning names."""
    for module in MODULES:
        monkeypatch.delitem(sys.modules, module, raising=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = resolve(*name)
    news = [re.search(r"use (\S+)$", str(one.message)) for one in caught]
    assert all(one.category is DeprecationWarning for one in caught)
    moved = name[0] in MODULES or name[-1] in NAMES.get(name[0], {})
    assert bool(news) == moved
    if not moved or len(name) == 1:
        return
    new = str(news[-1][1])  # type: ignore[index]
    home, _, attribute = (
        new if name[-1] in NAMES.get(name[0], {}) else f"{new}.{name[1]}"
    ).rpartition(".")
    assert found is resolve(home, attribute)


def test_old_module_when_it_lacks_a_name_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that never existed is an error as everywhere."""
    monkeypatch.delitem(sys.modules, "rlmm.metadata.codec", raising=False)
    with (
        pytest.warns(DeprecationWarning, match=r"use rlmm\.metadata"),
        pytest.raises(AttributeError),
    ):
        resolve("rlmm.metadata.codec", "nothing")
    with pytest.raises(AttributeError):
        resolve("spark_tiering.decoding", "nothing")


def test_warning_when_a_program_imports_an_old_name_points_at_its_line() -> None:
    """Each warning carries the file and the line of the import."""
    program = "from spark_tiering.plan.reasons import Mode"
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", program], capture_output=True, text=True, check=True
    )
    lines = [line for line in done.stderr.splitlines() if "Warning" in line]
    assert [line.partition(" is deprecated")[0] for line in lines] == [
        f"<string>:1: DeprecationWarning: spark_tiering.{name}"
        for name in ("plan", "plan.reasons", "plan.reasons.Mode")
    ]
