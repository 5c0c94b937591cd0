"""The repository as the tests about it see it: the files that are or would be committed."""

from __future__ import annotations

import ast
import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = (
    "rlmm",
    "broker_adapter",
    "spark_tiering",
    "pyspark_rlmm",
    "rlmm_demo",
    "rlmm_conformance",
)


@functools.cache
def files() -> tuple[Path, ...]:
    """Return every file that is committed or not ignored, relative to the root, in order."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode == 0:
        names = {Path(name) for name in listing.stdout.split("\0") if (ROOT / name).is_file()}
    else:  # no checkout, as where a source archive was unpacked
        names = {path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file()}
        names = {name for name in names if not _is_left_behind(name)}
    return tuple(sorted(names))


def ignored_sources() -> list[Path]:
    command = ["git", "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"]
    folders = (*PACKAGES, "bench", "deploy", "docs", "examples", "tests", "tools", "typings")
    listing = subprocess.run(
        [*command, *folders], cwd=ROOT, capture_output=True, text=True, check=False
    )
    names = map(Path, filter(None, listing.stdout.split("\0")))
    return sorted(name for name in names if not _is_left_behind(name))


def _is_left_behind(name: Path) -> bool:
    folders = name.parts[:-1]
    hidden = any(part.startswith(".") and part != ".ci" for part in folders)
    made = {"__pycache__", "build", "dist"}
    return hidden or any(part in made or part.endswith(".egg-info") for part in folders)


def python_files(*folders: str) -> list[Path]:
    prefixes = tuple(f"{folder}/" for folder in folders) or ("",)
    return [path for path in files() if path.suffix == ".py" and str(path).startswith(prefixes)]


def text_files() -> list[Path]:
    """Return the files written by hand or read by a person: no recorded data, no licence."""
    recorded = {".json", ".jsonl", ".bin", ".log", ".gz", ".png", ".snapshot", ".svg"}
    return [path for path in files() if path.suffix not in recorded and path.name != "LICENSE"]


@functools.cache
def read(path: Path) -> str:
    return (ROOT / path).read_text()


@functools.cache
def parse(path: Path) -> ast.Module:
    return ast.parse(read(path), str(path))
