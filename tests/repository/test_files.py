"""Rules for files of every kind in the tree."""

import re
from pathlib import Path

from tests.repository.test_code import findings
from tests.support.repository import rules, tree

LOCK_FILES = {
    "Cargo.lock",
    "Pipfile.lock",
    "package-lock.json",
    "pdm.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "pylock.toml",
    "uv.lock",
    "yarn.lock",
}
"""Files that record from where something was downloaded."""

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")


def test_nothing_is_left_unfinished() -> None:
    """No text of the tree carries a marker for work that was put off."""
    assert not findings({path: rules.leftovers(tree.read(path)) for path in tree.text_files()})


def test_no_lock_file_is_kept() -> None:
    """No file that records download addresses is in the tree."""
    assert not [path for path in tree.files() if path.name in LOCK_FILES]


def test_no_source_is_ignored() -> None:
    """Git ignores no source file, so clones and wheels have all of them."""
    assert not tree.ignored_sources()


def test_no_package_index_is_named() -> None:
    """No text names a package registry's host or an option that would choose one."""
    assert not findings({path: rules.addresses(tree.read(path)) for path in tree.text_files()})


def test_constraints_are_versions_and_hashes_and_nothing_else() -> None:
    """The pinned versions carry no address and no option besides their hashes."""
    allowed = re.compile(r"[a-z0-9-]+==\S+ \\|    --hash=sha256:[0-9a-f]{64}( \\)?|\s*#.*|")
    pinned = [path for path in tree.files() if path.parts[0] == "constraints"]
    assert len(pinned) >= 2
    for path in pinned:
        lines = tree.read(path).splitlines()
        assert lines[0].startswith("# For CPython "), path
        assert not [line for line in lines if not allowed.fullmatch(line) or "://" in line], path


def test_no_path_of_somebodys_machine_is_named() -> None:
    """No file names a path of a developer's machine."""
    assert not findings({path: rules.machine_paths(tree.read(path)) for path in tree.text_files()})


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
    present = {path: limit for path, limit in limits.items() if path in tree.files()}
    assert not [
        path for path, limit in present.items() if len(tree.read(path).splitlines()) > limit
    ]


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
