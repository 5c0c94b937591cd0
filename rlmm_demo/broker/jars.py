"""Jars of a broker: Kafka's by Maven and our plugins from source, cached; no run leaves a part."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rlmm.errors import EngineUnfit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PROGRAMS: Final = ("java", "javac", "mvn")
_JAVA_MIN: Final = 17
_DEADLINE_S: Final = 600
_METADATA_MANAGER, _STORAGE_MANAGER = "metadata-manager", "storage-manager"


@dataclass(frozen=True, slots=True)
class KafkaJars:
    java: str
    kafka: Path
    plugins: Path
    kafka_version: str

    @property
    def metadata_manager(self) -> str:
        return f"{self.plugins / _METADATA_MANAGER}/*"

    @property
    def storage_manager(self) -> str:
        return f"{self.plugins / _STORAGE_MANAGER}/*"

    def command(self, main_class: str, *arguments: str) -> list[str]:
        log4j = Path(str(files(__package__).joinpath("log4j2.properties"))).as_uri()
        return [
            self.java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xms64m", "-Xmx512m",
            f"-Dlog4j2.configurationFile={log4j}", "-cp", f"{self.kafka}/*", main_class, *arguments,
        ]  # fmt: skip


def make_jars(cache: Path) -> KafkaJars:
    """Fetch and build what is missing; `EngineUnfit` says why there can be no broker."""
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if missing:
        raise EngineUnfit(f"not installed: {', '.join(missing)}")
    java = shutil.which("java") or "java"
    _check_version(java)
    pom, project, version = _sources()
    if not (project / "pom.xml").is_file():
        raise EngineUnfit("the sources of the broker's plugins are not installed")
    kafka, plugins = _folders(cache)
    _make(kafka, lambda at: _fetch(pom, at))
    _make(plugins, lambda at: _build(project, at))
    return KafkaJars(java, kafka, plugins, version)


def is_made(cache: Path) -> bool:
    return all(folder.is_dir() for folder in _folders(cache))


def _sources() -> tuple[bytes, Path, str]:
    pom = files(__package__).joinpath("pom.xml").read_bytes()
    version = re.search(rb"<kafka.version>([^<]+)<", pom)
    assert version is not None, "stands in our own file"
    return pom, Path(str(files("broker_adapter"))) / "java", version[1].decode()


def _folders(cache: Path) -> tuple[Path, Path]:
    pom, project, _ = _sources()
    sources = sorted([*project.glob("pom.xml"), *project.glob("*/pom.xml")])
    sources += sorted(path for path in project.glob("*/src/main/**/*") if path.is_file())
    digest = _digest([path.read_bytes() for path in sources])
    return cache / f"kafka-{_digest([pom])}", cache / f"plugins-{digest}"


def _check_version(java: str) -> None:
    done = subprocess.run(  # noqa: S603  # the Java of this machine
        [java, "-version"], capture_output=True, text=True, check=False, timeout=60
    )
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    if found is None or int(found[1]) < _JAVA_MIN:
        raise EngineUnfit(f"needs Java {_JAVA_MIN} or newer")


def _digest(parts: Sequence[bytes]) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _make(folder: Path, make: Callable[[Path], None]) -> None:
    """Make a folder whole, or leave none behind."""
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    incoming = folder.with_name(f"{folder.name}-{os.getpid()}.incoming")
    shutil.rmtree(incoming, ignore_errors=True)
    incoming.mkdir()
    try:
        make(incoming)
        try:
            incoming.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another one made the same at the same time
                raise
    finally:
        shutil.rmtree(incoming, ignore_errors=True)


def _fetch(pom: bytes, folder: Path) -> None:
    project = folder.with_suffix(".pom.xml")
    project.write_bytes(pom)
    try:
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        _maven(project, ["-C", *goal], "Maven could not fetch Kafka")
    finally:
        project.unlink()


def _build(project: Path, folder: Path) -> None:
    words = ["package", "-Dmaven.test.skip=true", f"-Dplugins.build={folder}"]
    _maven(project / "pom.xml", words, "Maven could not build the plugins")
    shutil.rmtree(folder / "work", ignore_errors=True)


def _maven(project: Path, words: list[str], trouble: str) -> None:
    command = [shutil.which("mvn") or "mvn", "-B", "-q", "-f", str(project), *words]
    try:
        done = subprocess.run(  # noqa: S603  # the Maven of this machine
            command, capture_output=True, text=True, check=False, timeout=_DEADLINE_S,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise EngineUnfit(f"{trouble} within {_DEADLINE_S} s") from error
    if done.returncode != 0:
        reason = next(iter((done.stdout + done.stderr).strip().splitlines()), "no reason given")
        raise EngineUnfit(f"{trouble}: {reason[:200]}")
