"""Wheel and sdist, installed away from the tree, do the main job."""

import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import rlmm
from tests.support.repository import tree

pytestmark = [pytest.mark.long, pytest.mark.network, pytest.mark.timeout(900)]


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def pinned_backend() -> str:
    pinned = tree.read(Path("constraints/dev.txt"))
    found = re.search(r"^setuptools==(.+\\\n)+.+$", pinned, re.MULTILINE)
    assert found is not None
    return found.group()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and the sdist of this tree as `make dist` does; return their folder."""
    folder = tmp_path_factory.mktemp("built")
    python = Path(sys.executable)
    run(python, "-m", "build", "--no-isolation", "--outdir", folder, folder=tree.ROOT)
    return folder


@pytest.mark.parametrize("form", ["*.whl", "*.tar.gz"], ids=["wheel", "sdist"])
def test_package_when_installed_does_the_main_job(built: Path, form: str, tmp_path: Path) -> None:
    """In a fresh environment outside the tree the command answers and the corpus runs."""
    (package,) = built.glob(form)
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh/bin/python"
    (tmp_path / "backend.txt").write_text(pinned_backend())
    install: list[str | Path] = [python, "-m", "pip", "install", "--quiet"]
    for pinned in (tree.ROOT / "constraints/runtime.txt", tmp_path / "backend.txt"):
        run(*install, "--require-hashes", "--requirement", pinned, folder=tmp_path)
    run(*install, "--no-deps", "--no-build-isolation", package, folder=tmp_path)

    command = tmp_path / "fresh/bin/rlmm"
    assert run(command, "--version", folder=tmp_path).startswith(f"rlmm {rlmm.__version__}, ")
    assert "passed" in run(command, "conformance", "run", folder=tmp_path)


def test_packages_carry_what_they_need_and_nothing_else(built: Path) -> None:
    """The wheel holds all packages with their data; the sdist also holds the licence."""
    (wheel,) = built.glob("*.whl")
    (sdist,) = built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == set(tree.PACKAGES)
    shipped = {
        str(path)
        for path in tree.files()
        if path.parts[0] in tree.PACKAGES and path.suffix in {".py", ".json", ".jsonl", ".typed"}
    }
    assert shipped <= set(names)
    with tarfile.open(sdist) as source:
        assert f"rlmm-{rlmm.__version__}/LICENSE" in source.getnames()
