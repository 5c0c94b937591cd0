"""Each documented installation: every `--help`, and a call of each group of commands."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.utils import canonicalize_name

from rlmm.base.version import __version__
from tests.support.engine.chosen import needs_native
from tests.support.logs.copied_folders import events_of, write_ours
from tests.support.repository import tree
from tests.support.repository.installations import (
    Installation,
    ask_every_help,
    build_wheel,
    install,
    link_native_core,
    needed_by,
    pinned_in,
)
from tests.support.tier.job_folders import TierPlace

if TYPE_CHECKING:
    from collections.abc import Callable

    Installed = Callable[[str], Installation]

pytestmark = pytest.mark.timeout(300)

EXTRAS = {
    "base": (),
    "jobs": ("s3", "spark", "tiering"),
    "demo": ("demo",),
}
"""Installations by `pip install 'rlmm[...]'`; `image` is that of Dockerfile and unit."""
COMMANDS = 40
"""At least so many have a help of their own."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def distributions(wheel: Path, name: str) -> set[str]:
    if name == "image":
        return pinned_in("constraints/runtime.txt")
    return needed_by(wheel, EXTRAS[name])


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    made: dict[str, Installation] = {}

    def make(name: str) -> Installation:
        if name not in made:
            image = name == "image"
            names = (
                pinned_in("constraints/runtime.txt") if image else needed_by(wheel, EXTRAS[name])
            )
            made[name] = install(wheel, tmp_path_factory.mktemp(name), names)
            folder = made[name].folder
            asyncio.run(write_ours(folder / "topic", events_of(range(3))))
            assert TierPlace(folder).log_dir == folder / "logs", "named in JOB"
        return made[name]

    return make


@pytest.mark.parametrize(
    "name", ["base", "image", pytest.param("jobs", marks=pytest.mark.long), "demo"]
)
def test_help_when_asked_in_each_installation_then_is_printed(
    installed: Installed, name: str
) -> None:
    """Every command prints its help, whichever extras are installed."""
    asked, failed = ask_every_help(installed(name))
    assert not failed
    assert asked > COMMANDS


LOOK = ("--log-dirs", "topic")
JOB = ("--log-dir", "logs", "--offline", "--embedded", "archive", "--store", "store")
NO_TIERING = "awscrt, zstandard, which are not installed: pip install 'rlmm[tiering]'"
NO_S3 = "awscrt, boto3, zstandard, which are not installed: pip install 'rlmm[s3,tiering]'"
NO_SPARK = "Spark is not installed: pip install 'rlmm[spark]', and 'rlmm[java]' without a Java; "
NO_SPARK += "or use --no-spark, which needs neither"
NO_DEMO = "matplotlib, which is not installed: pip install 'rlmm[demo]'"
CALLS: dict[str, list[tuple[tuple[str, ...], int, str]]] = {
    "base": [
        (("segments", "list", *LOOK), 0, ""),
        (("explain", "orders-1@5", *LOOK), 0, ""),
        (("config", "show"), 0, ""),
        (("snapshot", "list", "topic"), 2, "holds no snapshots"),
        (("conformance", "run", "--suite", "partitioner"), 0, ""),
        (("preflight", "reassign", "orders", *LOOK), 2, "bootstrap"),
        (("demo", "--history"), 0, ""),
        (("demo",), 3, NO_DEMO),
        (("explain", "orders-1@5", *LOOK, "--check-objects", "--store", "store"), 3, NO_TIERING),
        (("tier", "status", "--store", "store"), 3, NO_TIERING),
        (("tier", "plan", *JOB[:-1], "s3://bucket/"), 3, NO_S3),
        (("tier", "adopt", "abort", "orders", *JOB[:2], *JOB[-2:]), 3, NO_TIERING),
        (("tier", "export", *LOOK, "--topic", "orders"), 0, ""),
    ],
    "image": [
        (("segments", "list", *LOOK), 0, ""),
        (("tier", "status", "--store", "store"), 3, "store-absent"),
        (("tier", "plan", *JOB), 3, NO_SPARK),
        (("tier", "run", *JOB, "--no-spark"), 0, ""),
        (("tier", "audit", *JOB[3:], "--no-spark"), 0, ""),
    ],
    "jobs": [(("tier", "plan", *JOB, "--no-spark"), 0, ""), (("demo",), 3, NO_DEMO)],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_call_of_each_group_when_installed_then_ends_as_documented(
    installed: Installed, name: str
) -> None:
    """Each call ends with its documented code, and with one line where a library is missing."""
    environment = installed(name)
    wrong = []
    for arguments, code, line in CALLS[name]:
        done = environment.run(*arguments)
        lines = done.stderr.splitlines()
        is_said = line in done.stderr and "Traceback" not in done.stderr
        if done.returncode != code or not is_said or (code == 3 and len(lines) > 1):
            wrong.append((arguments, done.returncode, done.stderr))
    assert not wrong


NOT_INSTALLED = "rlmm-native is not installed"


def require_one_line(environment: Installation, words: str) -> None:
    """Check that a start that asks for the core ends as a configuration error, in one line."""
    done = environment.run("serve", "--engine", "native", "--log-kind", "memory")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert words in line
    assert "pip install 'rlmm[native]'" in line


def test_installation_without_the_core_then_is_python_and_says_so(installed: Installed) -> None:
    """The pure wheel works alone, and nobody is left to guess which engine it has."""
    environment = installed("base")
    done = environment.run("--version")
    assert done.stdout == f"rlmm {__version__}, engine python {__version__} ({NOT_INSTALLED})\n"
    done = environment.run("status", *LOOK, "--output", "json")
    document = json.loads(done.stdout)
    assert (document["engine"], document["engine_version"]) == ("python", __version__)
    require_one_line(environment, f"engine = native: {NOT_INSTALLED}")
    assert not (environment.folder / "rlmm-data").exists()


@needs_native
def test_installation_with_the_core_then_uses_it(wheel: Path, tmp_path: Path) -> None:
    """With the extension beside the pure wheel the engine is native, unless Python is chosen."""
    environment = install(wheel, tmp_path, needed_by(wheel))
    link_native_core(environment)
    done = environment.run("--version")
    assert done.stdout == f"rlmm {__version__}, engine native {__version__}\n"
    asyncio.run(write_ours(tmp_path / "topic", events_of(range(3))))
    answers = [
        environment.run("segments", "list", *LOOK, "--output", "json", RLMM_ENGINE=engine).stdout
        for engine in ("native", "python")
    ]
    assert len(json.loads(answers[0])["items"]) > 0
    assert answers[0] == answers[1]
    said = environment.run("status", *LOOK, "--output", "json", RLMM_ENGINE="python").stdout
    assert json.loads(said)["engine"] == "python"


def test_installation_with_a_core_of_another_version_then_does_not_use_it(
    wheel: Path, tmp_path: Path
) -> None:
    """`auto` names both versions and uses Python; `native` ends the start."""
    environment = install(wheel, tmp_path, needed_by(wheel))
    (packages,) = tmp_path.glob("lib/python*/site-packages")
    (packages / "rlmm_native.py").write_text('__version__ = "0.0.9"\n')
    words = f"rlmm-native 0.0.9 is installed, and rlmm needs {__version__}"
    done = environment.run("--version")
    assert done.stdout == f"rlmm {__version__}, engine python {__version__} ({words})\n"
    require_one_line(environment, words)


@pytest.mark.long
@pytest.mark.network
@pytest.mark.timeout(1_800)
@pytest.mark.skipif(
    shutil.which("cargo") is None and "CI" not in os.environ, reason="builds the native core: cargo"
)
def test_extra_when_pip_installs_it_then_needs_a_tool_chain_or_a_wheel(
    wheel: Path, tmp_path: Path
) -> None:
    """`rlmm[native]` fails without cargo, is built from the sdist with it, and has one wheel."""
    build: list[str | Path] = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        tmp_path / "dist",
    ]
    sources = tmp_path / "native"
    shutil.copytree(tree.ROOT / "native", sources, ignore=shutil.ignore_patterns("target", "build"))
    subprocess.run([*build, "--sdist", sources], check=True, capture_output=True)
    (sdist,) = (tmp_path / "dist").iterdir()
    with tarfile.open(sdist) as archive:
        names = {Path(name).name for name in archive.getnames()}
    assert {"lib.rs", "Cargo.toml", "crates.txt", "LICENSE", "README.md"} <= names
    assert "Cargo.lock" not in names
    environment = install(wheel, tmp_path / "env", needed_by(wheel))
    pip: list[str | Path] = [
        sys.executable, "-m", "pip", "--python", environment.python,
        "install", "--quiet", "--no-index", "--find-links", tmp_path / "dist",
    ]  # fmt: skip
    asked = f"{wheel}[native]"
    bare = {**os.environ, "PATH": "/usr/bin:/bin", "CARGO_HOME": str(tmp_path / "none")}
    if shutil.which("cargo", path=bare["PATH"]) is None:
        done = subprocess.run([*pip, asked], env=bare, check=False, capture_output=True, text=True)
        assert done.returncode != 0
        assert NOT_INSTALLED in environment.run("--version").stdout
    subprocess.run([*build, "--wheel", sources], check=True, capture_output=True)
    (built,) = (tmp_path / "dist").glob("*.whl")
    assert "-cp311-abi3-" in built.name
    subprocess.run([*pip, asked], check=True)
    done = environment.run("--version")
    assert done.stdout == f"rlmm {__version__}, engine native {__version__}\n"


@pytest.mark.long
@pytest.mark.network
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [*EXTRAS, "image"])
def test_distributions_when_pip_installs_then_are_those_that_are_linked(
    wheel: Path, tmp_path: Path, name: str
) -> None:
    """A true installation by pip has the distributions that the quick tests link."""
    venv.create(tmp_path / "true", with_pip=True)
    python = tmp_path / "true/bin/python"
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    if name == "image":
        pins = tree.ROOT / "constraints/runtime.txt"
        subprocess.run([*pip, "--require-hashes", "-r", pins], check=True)
        subprocess.run([*pip, "--no-deps", wheel], check=True)
    else:
        pins = tree.ROOT / "constraints/dev.txt"
        (tmp_path / "versions.txt").write_text(
            "\n".join(re.findall(r"^[a-z0-9.-]+==[^ ;]+", pins.read_text(), re.MULTILINE))
        )
        extras = f"[{','.join(EXTRAS[name])}]" if EXTRAS[name] else ""
        # pyspark has no wheel.
        command = [part for part in pip if part not in ("--only-binary", ":all:")]
        subprocess.run(
            [*command, "--constraint", tmp_path / "versions.txt", f"{wheel}{extras}"], check=True
        )
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format", "json"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    names = {canonicalize_name(one["name"]) for one in json.loads(listed)}
    assert names - {"pip", "rlmm"} == distributions(wheel, name)
    assert ask_every_help(Installation(tmp_path / "true"))[1] == []
