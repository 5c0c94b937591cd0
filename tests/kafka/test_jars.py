"""The jars are fetched once, checked, and fetched again when something went wrong."""

from __future__ import annotations

import fcntl
import hashlib
from typing import TYPE_CHECKING

import pytest

from tests.kafka.jars import JarsUnusable, PrerequisiteMissing, fetched, locked
from tests.kafka.prepared import prepare

if TYPE_CHECKING:
    from pathlib import Path

LISTING = f"{hashlib.sha256(b'jar').hexdigest()}  a.jar\n"
BRINGS_ONE_JAR = """#!/bin/sh
echo "$@" >>"{calls}"
for last; do :; done
printf jar >"${{last#-DoutputDirectory=}}/a.jar"
"""
FAILS = """#!/bin/sh
echo "[ERROR] no route to anywhere"
exit 1
"""


class Maven:
    def __init__(self, folder: Path) -> None:
        self.program = folder / "bin" / "mvn"
        self.program.parent.mkdir()
        self._calls = folder / "calls"
        self.cache, self.pom, self.listing = folder / "cache", folder / "pom.xml", folder / "sums"
        self.pom.write_text("<project/>")
        self.listing.write_text(LISTING)
        self.does(BRINGS_ONE_JAR)

    def does(self, script: str) -> None:
        self.program.write_text(script.format(calls=self._calls))
        self.program.chmod(0o755)

    @property
    def calls(self) -> int:
        return len(self._calls.read_text().splitlines())

    def fetched(self) -> Path:
        with locked(self.cache):
            return fetched(self.cache, self.pom, self.listing)


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Maven:
    maven = Maven(tmp_path)
    monkeypatch.setenv("PATH", f"{maven.program.parent}:/usr/bin:/bin")
    return maven


def test_jars_when_cached_are_not_fetched_again_unless_the_marker_is_missing(maven: Maven) -> None:
    """A second call does not start Maven; an interrupted run's folder is fetched again."""
    lib = maven.fetched()
    assert maven.fetched() == lib
    assert [path.name for path in lib.iterdir()] == ["a.jar"]
    assert maven.calls == 1
    (lib / "a.jar").write_bytes(b"half")
    (lib.parent / "done").unlink()
    assert (maven.fetched() / "a.jar").read_bytes() == b"jar"
    assert maven.calls == 2


def test_jars_when_not_the_listed_ones_are_refused_by_name(maven: Maven) -> None:
    """A jar that differs, is missing or is too many is named, and nothing counts as fetched."""
    maven.listing.write_text(f"{hashlib.sha256(b'other').hexdigest()}  a.jar\n")
    with pytest.raises(JarsUnusable, match=r"1 of the fetched jars .* lists them: a\.jar"):
        maven.fetched()
    maven.listing.write_text(LISTING.replace("a.jar", "b.jar"))
    with pytest.raises(JarsUnusable, match=r"2 of the fetched jars .*: a\.jar, b\.jar"):
        maven.fetched()
    maven.listing.write_text(LISTING)
    maven.fetched()
    assert maven.calls == 3
    maven.does(FAILS)
    maven.listing.write_text(LISTING.replace("a.jar", "c.jar"))
    with pytest.raises(JarsUnusable, match="no route to anywhere"):
        maven.fetched()


def test_cache_when_somebody_works_in_it_is_locked(tmp_path: Path) -> None:
    """No other process gets the lock of a cache while one holds it."""
    with (tmp_path / "lock").open("wb") as other:
        with locked(tmp_path), pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_prerequisites_when_missing_name_the_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a fresh tree one line names the missing programs and their packages."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PrerequisiteMissing) as raised:
        prepare(tmp_path / "cache")
    assert str(raised.value) == (
        "needs java and javac and mvn for a real Kafka broker"
        " (Debian, Ubuntu: apt-get install default-jdk-headless maven)"
    )
