"""Rules for files of every kind in the tree."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.repository.test_code import findings
from tests.support.repository import rules, tree

LOCK_FILES = {
    "Cargo.lock", "Pipfile.lock", "package-lock.json", "pdm.lock", "pnpm-lock.yaml", "poetry.lock",
    "pylock.toml", "uv.lock", "yarn.lock",
}  # fmt: skip
"""Files that record from where something was downloaded."""

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")


@pytest.mark.parametrize(
    "rule", [rules.leftovers, rules.addresses, rules.machine_paths], ids=lambda rule: rule.__name__
)
def test_no_text_has_leftovers_registries_or_paths(rule: Callable[[str], list[str]]) -> None:
    """No text marks unfinished work, chooses a package registry, or names a developer's folder."""
    assert not findings({path: rule(tree.read(path)) for path in tree.text_files()})


def test_no_lock_file_is_kept() -> None:
    """No file that records download addresses is in the tree."""
    assert not [path for path in tree.files() if path.name in LOCK_FILES]


def test_no_source_is_ignored() -> None:
    """Git ignores no source file, so clones and wheels have all of them."""
    assert not tree.ignored_sources()


def test_constraints_are_versions_and_hashes_and_nothing_else() -> None:
    """The pinned versions carry no address and no option besides their hashes."""
    allowed = re.compile(r"[a-z0-9-]+==\S+ \\|    --hash=sha256:[0-9a-f]{64}( \\)?|\s*#.*|")
    pinned = [path for path in tree.files() if path.parts[0] == "constraints"]
    assert len(pinned) >= 2
    for path in pinned:
        lines = tree.read(path).splitlines()
        assert lines[0].startswith("# For CPython "), path
        assert not [line for line in lines if not allowed.fullmatch(line) or "://" in line], path


def test_links_between_documents_lead_somewhere() -> None:
    """Every relative link of a document names a file or folder of the tree."""
    broken = [
        f"{path}: {target}"
        for path in tree.files()
        if path.suffix == ".md"
        for target in LINK.findall(tree.read(path))
        if "://" not in target and not (tree.ROOT / path.parent / target).exists()
    ]
    assert not broken


def test_front_pages_stay_short() -> None:
    """The front pages keep to their maximum length."""
    limits = {Path("README.md"): 120, Path("ARCHITECTURE.md"): 250}
    assert not [path for path, limit in limits.items() if len(tree.read(path).splitlines()) > limit]


def test_files_that_documents_name_are_there() -> None:
    """A test, module or folder named in a document exists, so that the map stays true."""
    named = re.compile(r"`((?:rlmm|tests|bench|tools|docs|broker_adapter|spark_tiering)/[\w./-]+)")
    missing = [
        f"{path}: {name}"
        for path in tree.files()
        if path.suffix == ".md" and path.name != "CHANGELOG.md"
        for name in named.findall(tree.read(path))
        if "*" not in name and not (tree.ROOT / name.rstrip("/")).exists()
    ]
    assert not missing
