"""Writes constraints/: exact versions with hashes; `dev.txt` is resolved under `runtime.txt`."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("demo", "java", "s3", "spark", "tiering")
"""The extras that are pinned for development: those that tests use."""
RUNTIME_EXTRAS = ("s3", "tiering")
"""The extras that image and unit install, so that `rlmm tier` works beside the service."""

HEADER = "# For CPython 3.11, 3.12 and 3.13 on Linux; written by `make constraints`.\n"
OPTIONS = [
    "--generate-hashes",
    "--strip-extras",
    "--allow-unsafe",
    "--no-header",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-emit-trusted-host",
    "--no-emit-options",
]


def group_requirements(groups: dict[str, list[Any]], name: str) -> list[str]:
    """Return the requirements of one dependency group, the groups it includes among them."""
    requirements: list[str] = []
    for entry in groups[name]:
        if isinstance(entry, str):
            requirements.append(entry)
        else:
            requirements.extend(group_requirements(groups, entry["include-group"]))
    return requirements


def runtime_requirements(project: dict[str, Any]) -> list[str]:
    extras = project["project"]["optional-dependencies"]
    return [
        *project["project"]["dependencies"],
        *(requirement for name in RUNTIME_EXTRAS for requirement in extras[name]),
    ]


def development_requirements(project: dict[str, Any]) -> list[str]:
    extras = project["project"]["optional-dependencies"]
    return [
        *project["project"]["dependencies"],
        *(
            requirement
            for name in EXTRAS
            for requirement in extras[name]
            if "rlmm[" not in requirement
        ),
        *group_requirements(project["dependency-groups"], "dev"),
    ]


def compile_constraints(requirements: list[str], target: Path, options: list[str]) -> None:
    """Resolve *requirements* into *target*; pins already there are kept unless asked otherwise."""
    command = [sys.executable, "-m", "piptools", "compile", "--quiet", *OPTIONS, *options]
    subprocess.run(
        [*command, "--output-file", str(target.relative_to(ROOT)), "-"],
        input="\n".join(requirements),
        text=True,
        cwd=ROOT,
        check=True,
    )
    body = target.read_text().replace("# via -r -", "# via rlmm").replace("#   -r -", "#   rlmm")
    target.write_text(HEADER + body.removeprefix(HEADER))


def main() -> None:
    """Write both files; further arguments go on to pip-compile."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime, dev = ROOT / "constraints/runtime.txt", ROOT / "constraints/dev.txt"
    compile_constraints(runtime_requirements(project), runtime, sys.argv[1:])
    compile_constraints(
        development_requirements(project),
        dev,
        ["--constraint", "constraints/runtime.txt", *sys.argv[1:]],
    )


if __name__ == "__main__":
    main()
