"""The jars, ready to run; `python -m tests.kafka.prepared` makes them, once for a tree."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

from tests.kafka.jars import (
    CACHE,
    HERE,
    Jars,
    compiled,
    digest,
    fetched,
    find_java,
    is_fetched,
    locked,
    required,
)
from tests.kafka.node import CLEAN_STATUS
from tests.kafka.process import ProcessFailed
from tests.kafka.tiered import tiered_node

if TYPE_CHECKING:
    from pathlib import Path

ARCHIVE_DEADLINE_S = 90.0


def prepare(cache: Path = CACHE) -> Jars:
    """Make the missing jars; raise `PrerequisiteMissing` or `JarsUnusable` when impossible."""
    pom = HERE / "pom.xml"
    if not is_fetched(cache, pom):
        required("java", "javac", "mvn")  # named together, so that they are installed together
    java, version = find_java()
    with locked(cache):
        lib = fetched(cache, pom, HERE / "jars.sha256")
        own = compiled(lib.parent, lib, sorted((HERE / "java").rglob("*.java")))
        archive = lib.parent / f"kafka-{digest(version.encode(), own.name.encode())}.jsa"
        jars = Jars(java, lib, own, archive)
        if not archive.is_file():
            write_archive(jars)
    return jars


def write_archive(jars: Jars) -> None:
    folder = jars.archive.with_suffix(".run")
    shutil.rmtree(folder, ignore_errors=True)
    unfinished = folder / "unfinished.jsa"
    with tiered_node(jars, folder) as node:
        node.flags = [f"-XX:ArchiveClassesAtExit={unfinished}"]
        node.start()
        status = node.stop(ARCHIVE_DEADLINE_S)
        if status != CLEAN_STATUS or not unfinished.is_file():
            raise ProcessFailed(
                f"no class-data archive was written, status {status}:\n{node.log.tail()}"
            )
    for outdated in jars.archive.parent.glob("kafka-*.jsa"):
        outdated.unlink()  # whoever still runs has it; whoever starts does well without
    unfinished.rename(jars.archive)
    shutil.rmtree(folder)


if __name__ == "__main__":
    sys.stdout.write(f"{prepare().lib}\n")
