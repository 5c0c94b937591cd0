"""The files of `deploy/`, read as their tools read them."""

from __future__ import annotations

import json
import re
import subprocess
from configparser import RawConfigParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.support.repository import tree

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPLOY = Path("deploy")
UNIT = DEPLOY / "systemd/rlmm.service"
DOCKERFILE = DEPLOY / "docker/Dockerfile"
RULES = DEPLOY / "prometheus/rules.yml"
DASHBOARD = DEPLOY / "grafana/rlmm.json"
_NAME = re.compile(r"\brlmm_[a-z0-9_]+")


def files(suffix: str) -> list[Path]:
    return [path for path in tree.files() if path.parts[0] == "deploy" and path.suffix == suffix]


def documents(path: Path) -> list[dict[str, Any]]:
    return [found for found in yaml.safe_load_all(tree.read(path)) if found is not None]


def manifest(path: str, kind: str) -> dict[str, Any]:
    (found,) = [one for one in documents(DEPLOY / "kubernetes" / path) if one["kind"] == kind]
    return found


def container(path: str) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = manifest(path, "Deployment")["spec"]["template"]["spec"]["containers"]
    return found


def unit() -> RawConfigParser:
    parser = RawConfigParser(strict=False, dict_type=_Joining)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(tree.read(UNIT))
    return parser


class _Joining(dict[Any, Any]):
    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, list) and key in self and isinstance(self[key], list):
            value = [*self[key], *value]
        super().__setitem__(key, value)


def instructions() -> list[tuple[str, str]]:
    lines = [line for line in tree.read(DOCKERFILE).splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    found = [line.partition(" ") for line in joined.splitlines() if line.strip()]
    return [(name, " ".join(rest.split())) for name, _, rest in found]


def alerts() -> list[dict[str, Any]]:
    (rules,) = documents(RULES)
    return [rule for group in rules["groups"] for rule in group["rules"] if "alert" in rule]


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tree.ROOT / DASHBOARD).read_text())
    return found


def panels() -> list[dict[str, Any]]:
    found = []
    for panel in dashboard()["panels"]:
        found += [panel, *panel.get("panels", [])]
    return [panel for panel in found if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    for alert in alerts():
        yield alert["alert"], alert["expr"]
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            yield f"${variable['name']}", variable["definition"]


def metric_names(expression: str) -> set[str]:
    return set(_NAME.findall(expression))


def label_names(expression: str) -> set[str]:
    found = set(re.findall(r"[{,]\s*([a-z_]+)\s*(?:=~|!~|!=|=)", expression))
    for names in re.findall(
        r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)", expression
    ):
        found |= {name.strip() for name in names.split(",") if name.strip()}
    found |= set(re.findall(r"label_values\([^)]*,\s*([a-z_]+)\)", expression))
    return found


def anchor(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower().replace("`", ""))
    return kept.replace(" ", "-")


def anchors(page: str) -> set[str]:
    found = re.findall(r"^#{1,6} (.+)$", tree.read(Path(page)), re.MULTILINE)
    return {anchor(heading) for heading in found}


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tree.ROOT)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr
