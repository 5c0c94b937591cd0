"""The crates of the native core: exact versions, and the contents that were built."""

from __future__ import annotations

import os
import re
import tomllib

import pytest

from tests.support.repository import tree

CRATES = tree.ROOT / "native/crates.txt"
LOCK = tree.ROOT / "native/Cargo.lock"


def test_crates_that_are_needed_then_have_exact_versions() -> None:
    """Cargo.toml pins every crate of crates.txt, also those that others ask for."""
    manifest = tomllib.loads((tree.ROOT / "native/Cargo.toml").read_text())
    asked = manifest["dependencies"] | manifest["target"]["cfg(any())"]["dependencies"]
    wanted = {name: one if isinstance(one, str) else one["version"] for name, one in asked.items()}
    pinned = dict(line.split()[:2] for line in CRATES.read_text().splitlines())
    assert wanted == {name: f"={version}" for name, version in pinned.items()}


@pytest.mark.skipif(
    not LOCK.exists() and "CI" not in os.environ,
    reason="the native core was not built in this tree: `make native` builds it, with cargo",
)
def test_crates_that_were_built_then_are_those_of_the_list() -> None:
    """Cargo resolved the versions of crates.txt, with the same checksums."""
    built = re.findall(
        r'name = "(.+)"\nversion = "(.+)"\nsource = .*\nchecksum = "(.+)"', LOCK.read_text()
    )
    assert sorted(" ".join(one) for one in built) == CRATES.read_text().splitlines()
