"""
Tools of other projects that check `deploy/`: promtool, kustomize, and kubeconform with schemas.

They come from Debian's packages and from the Go module proxy, once, into `.cache/foreign-tools`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.repository import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CACHE = tree.ROOT / ".cache" / "foreign-tools"
KUBECONFORM = "v0.7.0"
KUSTOMIZE = "v5.7.1"
KUBERNETES = "v1.34.1"
FETCH_DEADLINE_S = 900
_KUBECONFORM = f"github.com/yannh/kubeconform/cmd/kubeconform@{KUBECONFORM}"
_KUSTOMIZE = f"sigs.k8s.io/kustomize/kustomize/v5@{KUSTOMIZE}"
_SWAGGER = "api/openapi-spec/swagger.json"
_REFERENCE = re.compile(r'"#/definitions/([^"]+)"')
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"


def promtool() -> Path:
    """Return promtool; skip the test where it cannot be had."""
    return _made("promtool", _unpack_promtool, "apt-get")


def kubeconform() -> Path:
    """Return kubeconform; skip the test where it cannot be had."""
    return _made(f"kubeconform-{KUBECONFORM}/kubeconform", _build(_KUBECONFORM), "go")


def kustomize() -> Path:
    """Return kustomize; skip the test where it cannot be had."""
    return _made(f"kustomize-{KUSTOMIZE}/kustomize", _build(_KUSTOMIZE), "go")


def kubernetes_schemas() -> Path:
    """Return a folder with a strict JSON schema of each kind; skip where it cannot be had."""
    return _made(f"kubernetes-{KUBERNETES}", _write_schemas, "go")


def _made(name: str, make: Callable[[Path], None], program: str) -> Path:
    on_path = shutil.which(Path(name).name)
    if on_path is not None:
        return Path(on_path)
    target = CACHE / name
    with _only_one():
        if not target.exists():
            if shutil.which(program) is None:
                pytest.skip(f"{Path(name).name} is not here, and {program} to get it is not either")
            try:
                make(target)
            except (OSError, subprocess.SubprocessError) as error:
                pytest.skip(f"{Path(name).name} cannot be had by {program}: {error}")
    return target


@contextmanager
def _only_one() -> Iterator[None]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(*command: object, folder: Path, **environ: str) -> str:
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, env={**os.environ, **environ},
        capture_output=True, text=True, check=True, timeout=FETCH_DEADLINE_S,
    )  # fmt: skip
    return done.stdout


def _unpack_promtool(target: Path) -> None:
    work = CACHE / "prometheus"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    try:
        _run("apt-get", "download", "prometheus", folder=work)
    except subprocess.CalledProcessError:  # a new machine has no package lists yet
        _run("apt-get", "update", folder=work)
        _run("apt-get", "download", "prometheus", folder=work)
    (package,) = work.glob("*.deb")
    _run("dpkg", "-x", package, work / "unpacked", folder=work)
    (work / "unpacked/usr/bin/promtool").rename(target)
    shutil.rmtree(work)


def _build(module: str) -> Callable[[Path], None]:
    def build(target: Path) -> None:
        _run("go", "install", module, folder=CACHE, GOBIN=str(target.parent))

    return build


def _write_schemas(target: Path) -> None:
    module = f"k8s.io/kubernetes@{KUBERNETES}"
    found = json.loads(_run("go", "mod", "download", "-json", module, folder=CACHE))
    described = json.loads((Path(found["Dir"]) / _SWAGGER).read_text())["definitions"]
    work = target.with_suffix(".part")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    definitions = {name: _strict(name, one) for name, one in described.items()}
    for name, one in described.items():
        for kind in one.get("x-kubernetes-group-version-kind", ()):
            group = "-".join(filter(None, (kind["group"].split(".")[0], kind["version"])))
            needed = _needed(name, definitions)
            schema = {"$ref": f"#/definitions/{name}", "definitions": needed}
            (work / f"{kind['kind'].lower()}-{group}.json").write_text(json.dumps(schema))
    work.rename(target)


def _needed(name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found[one] = definitions[one]
            waiting += _REFERENCE.findall(json.dumps(found[one]))
    return found


def _strict(name: str, definition: dict[str, Any]) -> dict[str, Any]:
    """Return a definition that refuses fields that it does not name, as the API server warns."""
    if name in {_QUANTITY, _INT_OR_STRING}:
        return {"type": ["string", "number"]}
    if "properties" in definition and "additionalProperties" not in definition:
        return {**definition, "additionalProperties": False}
    return definition
