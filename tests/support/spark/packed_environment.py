"""
An environment that has our packages and what two extras need, and the archive of it that executors
are sent: as `pip install 'rlmm[s3,tiering]'` and `venv-pack` make it, without a network.
"""

from __future__ import annotations

import re
import shutil
import tarfile
import venv
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import TYPE_CHECKING

from tests.support.repository import tree

if TYPE_CHECKING:
    from pathlib import Path

OURS = "rlmm"
EXTRAS = ("s3", "tiering")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([\w-]+)['\"]")


def environment_of_ours(folder: Path) -> Path:
    venv.create(folder, symlinks=True, with_pip=False)
    (place,) = (folder / "lib").glob("python*/site-packages")
    for one in needed():
        for file in one.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                (place / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(one.locate_file(file)), place / file)
    for path in tree.files():
        if path.parts[0] in tree.PACKAGES:
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tree.ROOT / path, place / path)
    return folder / "bin" / "python"


def packed(environment: Path, archive: Path) -> Path:
    """Pack the environment as an archive that works at any path."""
    with tarfile.open(archive, "w:gz", compresslevel=1) as file:
        file.add(environment, ".")
    return archive


def needed() -> list[Distribution]:
    found: dict[str, Distribution] = {}
    waiting = _needs(distribution(OURS), EXTRAS)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:  # for another Python, or another system
            continue
        waiting += _needs(found[name], ())
    return list(found.values())


def _needs(one: Distribution, extras: tuple[str, ...]) -> list[str]:
    needs = []
    for text in one.requires or ():
        asked = _EXTRA.search(text)
        named = _NAME.match(text)
        if named is not None and (asked is None or asked[1] in extras):
            needs.append(named[0])
    return needs
