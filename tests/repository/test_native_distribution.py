"""The distribution of the native core: its version, and how a checkout builds it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

import rlmm
from tests.support.repository import tree

if TYPE_CHECKING:
    from pathlib import Path

NATIVE = tree.ROOT / "native"
TOOLS = ("sh", "sed", "cut", "sort", "head", "find", "cat", "cksum", "rm", "dirname")
PYTHON = """#!/bin/sh
case "$1" in
-c) echo 3.13.0 ;;
*) echo "$@" >>built.txt; echo "error: cannot fetch"; exit "$(cat exit-code)" ;;
esac
"""
"""The environment's Python: it says its version, or runs pip."""
ENDS_WELL, ENDS_BADLY = 0, 2
WITHOUT = "rlmm: the native core is not built, so the engine is Python: "


def test_version_of_the_core_is_that_of_rlmm_everywhere() -> None:
    """The crate, the distribution and the extra name the version of rlmm, and no other."""
    project = tomllib.loads((tree.ROOT / "pyproject.toml").read_text())["project"]
    distribution = tomllib.loads((NATIVE / "pyproject.toml").read_text())["project"]
    crate = tomllib.loads((NATIVE / "Cargo.toml").read_text())["package"]
    assert (crate["name"], distribution["name"]) == ("rlmm-native", "rlmm-native")
    assert [crate["version"], distribution["version"]] == [rlmm.__version__] * 2
    extra = project["optional-dependencies"]["native"]
    assert extra == [f"rlmm-native=={rlmm.__version__}"]


@pytest.mark.skipif(
    find_spec("rlmm_native") is None and "CI" not in os.environ,
    reason="the native core is not built: `make native` builds it, with cargo",
)
def test_version_that_the_extension_says_then_is_that_of_rlmm() -> None:
    """The extension that is installed here was built from this version."""
    assert import_module("rlmm_native").__version__ == rlmm.__version__


def test_pins_of_the_build_are_those_of_the_constraints() -> None:
    """What builds the extension has the versions whose hashes are pinned for development."""
    pinned = set(
        re.findall(
            r"^(\S+==\S+) \\$", (tree.ROOT / "constraints/dev.txt").read_text(), re.MULTILINE
        )
    )
    requires = tomllib.loads((NATIVE / "pyproject.toml").read_text())["build-system"]["requires"]
    assert set(requires) <= pinned
    assert len(requires) == 2


def test_licence_of_the_core_is_that_of_rlmm() -> None:
    """The distribution of the core carries the same text."""
    assert (NATIVE / "LICENSE").read_bytes() == (tree.ROOT / "LICENSE").read_bytes()


@dataclass(frozen=True, slots=True)
class Checkout:
    folder: Path

    def program(self, name: str, text: str) -> None:
        file = self.folder / "bin" / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    def build(self, *arguments: str) -> tuple[int, str, str]:
        done = subprocess.run(
            ["sh", "tools/native.sh", *arguments],
            cwd=self.folder, env={"PATH": str(self.folder / "bin")},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    @property
    def attempts(self) -> int:
        found = self.folder / "built.txt"
        return len(found.read_text().splitlines()) if found.exists() else 0

    def pip_exits(self, code: int) -> None:
        (self.folder / "exit-code").write_text(str(code))


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Return a tree with the script and a crate, on a machine with a compiler and no pip."""
    for folder in ("tools", "native/src", "bin", ".venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(tree.ROOT / "tools/native.sh", tmp_path / "tools")
    shutil.copy(NATIVE / "Cargo.toml", tmp_path / "native")
    (tmp_path / "native/src/lib.rs").write_text("// a crate\n")
    python = tmp_path / ".venv/bin/python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    for name in TOOLS:
        found = shutil.which(name)
        assert found is not None, name
        (tmp_path / "bin" / name).symlink_to(found)
    made = Checkout(tmp_path)
    made.program("cargo", "echo cargo 1.95.0")
    made.program("cc", "")
    made.pip_exits(0)
    return made


LACKS = {
    "no cargo": ("cargo", None, "needs cargo, Rust 1.85 or newer"),
    "cargo without a tool chain": ("cargo", "exit 1", "cargo is on the path and does not start"),
    "too old": ("cargo", "echo cargo 1.84.1", "needs Rust 1.85 or newer, found 1.84.1"),
    "no linker": ("cc", None, "needs a C compiler for its linker"),
}


@pytest.mark.parametrize("lack", LACKS)
def test_setup_when_the_core_cannot_be_built_then_says_so_and_ends_well(
    checkout: Checkout, lack: str
) -> None:
    """One line of what is missing; `make native`, where it is wanted, ends with an error."""
    program, text, words = LACKS[lack]
    (checkout.folder / "bin" / program).unlink()
    if text is not None:
        checkout.program(program, text)
    code, said, errors = checkout.build("--try")
    assert (code, said.count("\n"), errors) == (ENDS_WELL, 1, "")
    assert said.startswith(WITHOUT + words)
    code, said, errors = checkout.build()
    assert (code, said) == (ENDS_BADLY, "")
    assert words in errors
    assert checkout.attempts == 0


def test_setup_when_the_build_fails_then_says_so_and_does_not_repeat_it(checkout: Checkout) -> None:
    """Without a network each later target says it in one line; `make native` tries again."""
    checkout.pip_exits(1)
    code, said, errors = checkout.build("--try")
    assert (code, errors) == (ENDS_WELL, "")
    assert said.splitlines()[-1].startswith(WITHOUT + "the build failed, without a network")
    assert "cannot fetch" in (checkout.folder / ".venv/native.log").read_text()
    code, said, _ = checkout.build("--try")
    assert (code, said.count("\n"), checkout.attempts) == (ENDS_WELL, 1, 1)
    assert "`make native` repeats it" in said
    code, _, errors = checkout.build()
    assert (code, checkout.attempts) == (ENDS_BADLY, 2)
    assert "cannot fetch" in errors
    checkout.pip_exits(0)
    assert checkout.build()[0] == ENDS_WELL
    assert checkout.build("--try") == (ENDS_WELL, "", "")


def test_setup_when_the_core_is_built_then_builds_it_again_only_after_a_change(
    checkout: Checkout,
) -> None:
    """Sources and the compiler count; what a build leaves behind does not."""
    code, said, _ = checkout.build("--try")
    assert (code, said.count("\n"), checkout.attempts) == (ENDS_WELL, 1, 1)
    (checkout.folder / "native/target/debug").mkdir(parents=True)
    (checkout.folder / "native/target/debug/made.rs").write_text("")
    (checkout.folder / "native/Cargo.lock").write_text("")
    assert checkout.build("--try") == (ENDS_WELL, "", "")
    (checkout.folder / "native/src/lib.rs").write_text("// a change\n")
    checkout.build("--try")
    assert checkout.attempts == 2
    checkout.program("cargo", "echo cargo 1.96.0")
    checkout.build("--try")
    assert checkout.attempts == 3


def test_build_then_takes_nothing_from_an_index(checkout: Checkout) -> None:
    """The build runs with what constraints/dev.txt has installed, by hash."""
    checkout.build()
    words = (checkout.folder / "built.txt").read_text().split()
    assert {"--no-index", "--no-deps", "--no-build-isolation"} <= set(words)
