"""Brokers of other versions, with jars and digests of their own; `__main__` fetches them."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from tests.kafka.jars import CACHE, HERE, Jars, compiled, fetched, find_java, locked
from tests.kafka.prepared import prepare
from tests.kafka.tiered import TIERED_TOPIC

if TYPE_CHECKING:
    from pathlib import Path

POM = HERE / "pom.xml"
_VERSION = re.compile(r"(?<=<kafka\.version>)[^<]+")
USUAL = _VERSION.findall(POM.read_text())[0]

OTHERS = ("3.9.2", "4.0.2", "4.1.2", "4.2.1")
PROGRAMS = ("Leash.java", "StockConsumer.java")

WITHOUT_INTERNAL_BYTES = ("3.", "4.0.")
"""They take small segments by the ordinary setting, and know no other."""


def pom_of(version: str, cache: Path) -> Path:
    pom = cache / "poms" / version / "pom.xml"
    pom.parent.mkdir(parents=True, exist_ok=True)
    pom.write_text(_VERSION.sub(version, POM.read_text()))
    return pom


def listing_of(version: str) -> Path:
    return HERE / f"jars-{version}.sha256"


def jars_of(version: str, cache: Path = CACHE) -> Jars:
    if version == USUAL:
        return prepare(cache)
    java, _ = find_java()
    with locked(cache):
        lib = fetched(cache, pom_of(version, cache), listing_of(version))
        sources = [HERE / "java" / "rlmm" / "kafka" / name for name in PROGRAMS]
        own = compiled(lib.parent, lib, sources)
    # No archive of classes: a few starts are not worth the making of one.
    return Jars(java, lib, own, lib.parent / "none.jsa")


def tiered_topic(version: str) -> dict[str, str]:
    settings = dict(TIERED_TOPIC)
    if version.startswith(WITHOUT_INTERNAL_BYTES):
        settings["segment.bytes"] = settings.pop("internal.segment.bytes")
    return settings


if __name__ == "__main__":
    for each in OTHERS:
        sys.stdout.write(f"{jars_of(each).lib}\n")
