"""Environments as `pip install` makes them, linked from the distributions of this environment."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from configparser import ConfigParser
from dataclasses import dataclass
from email import message_from_string
from importlib.metadata import Distribution, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.repository import tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SOURCES = ("pyproject.toml", "README.md", "LICENSE", *tree.PACKAGES)
_SCRIPT = "#!{python}\nimport sys\n\nfrom {module} import {name}\n\nsys.exit({name}())\n"


def build_wheel(folder: Path) -> Path:
    """Build the wheel from a copy of the sources, so that nothing is written into the tree."""
    sources = folder / "sources"
    sources.mkdir()
    for name in _SOURCES:
        copied = shutil.copytree if (tree.ROOT / name).is_dir() else shutil.copyfile
        copied(tree.ROOT / name, sources / name)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*build, str(sources)], check=True, capture_output=True, text=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@dataclass(frozen=True, slots=True)
class Installation:
    """A folder in which the command `rlmm` has the wheel and some distributions, and no more."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin/python"

    def run(
        self, *arguments: str, program: str = "rlmm", **environ: str
    ) -> subprocess.CompletedProcess[str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return subprocess.run(
            [self.folder / "bin" / program, *arguments],
            cwd=self.folder, env={**kept, "HOME": str(self.folder), "COLUMNS": "80", **environ},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip


def install(wheel: Path, folder: Path, names: Iterable[str]) -> Installation:
    """Make an environment in *folder* with the wheel and the distributions called *names*."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    for name in sorted(names):
        _link(distribution(name), packages)
    installed = Installation(folder)
    (entry_points,) = packages.glob("rlmm-*.dist-info/entry_points.txt")
    scripts = ConfigParser()
    scripts.read(entry_points)
    for script, place in scripts["console_scripts"].items():
        module, _, function = place.partition(":")
        file = folder / "bin" / script
        file.write_text(_SCRIPT.format(python=installed.python, module=module, name=function))
        file.chmod(0o755)
    return installed


def link_native_core(installed: Installation) -> None:
    """Add the native core of this environment, as `pip install 'rlmm[native]'` does."""
    found = find_spec("rlmm_native")
    assert found is not None
    assert found.origin is not None
    (packages,) = installed.folder.glob("lib/python*/site-packages")
    (packages / Path(found.origin).name).symlink_to(found.origin)


def _link(found: Distribution, packages: Path) -> None:
    tops = {Path(file).parts[0] for file in found.files or ()} - {"..", "__pycache__"}
    assert tops, f"{found.name} does not list its files"
    for top in tops:
        (packages / top).symlink_to(Path(str(found.locate_file(top))))


def needed_by(wheel: Path, extras: Iterable[str] = ()) -> set[str]:
    """Return the names of all distributions that pip installs with *wheel* and its *extras*."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = message_from_string(archive.read(name).decode())
    found: set[str] = set()
    asked: list[tuple[str, frozenset[str]]] = []
    waiting = list(_wanted(metadata.get_all("Requires-Dist", []), extras))
    while waiting:
        one = waiting.pop()
        key = (canonicalize_name(one.name), frozenset(one.extras))
        if key in asked:
            continue
        asked.append(key)
        if key[0] == "rlmm":
            waiting += _wanted(metadata.get_all("Requires-Dist", []), one.extras)
            continue
        found.add(key[0])
        waiting += _wanted(distribution(key[0]).requires or [], one.extras)
    return found


def _wanted(requirements: Iterable[str], extras: Iterable[str]) -> Iterator[Requirement]:
    for text in requirements:
        one = Requirement(text)
        marker = one.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield one


def pinned_in(constraints: str) -> set[str]:
    """Return the names that a file of constraints installs here."""
    text = tree.read(Path(constraints))
    pins = re.findall(r"^([a-z0-9.-]+)==\S+((?: ; .+?)?) \\$", text, re.MULTILINE)
    return {one.name for one in _wanted(map("".join, pins), ())}


_WALK = """
import json

import click
from click.testing import CliRunner

from rlmm.cli.main import cli

failed, asked = [], 0
waiting = [[]]
while waiting:
    path = waiting.pop()
    result = CliRunner().invoke(cli, [*path, "--help"], prog_name="rlmm")
    asked += 1
    if result.exit_code or not result.stdout.startswith("Usage: "):
        failed.append([" ".join(path), result.exit_code, result.output, repr(result.exception)])
        continue
    command = cli
    for name in path:
        command = command.get_command(click.Context(command), name)
    if isinstance(command, click.Group):
        waiting += [[*path, name] for name in command.list_commands(click.Context(command))]
print(json.dumps({"failed": failed, "asked": asked}))
"""


def ask_every_help(installed: Installation) -> tuple[int, list[object]]:
    """Print the help of every command in one process; return how many, and those that fail."""
    done = installed.run("-c", _WALK, program="python")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found["asked"], found["failed"]
