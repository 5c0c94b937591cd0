"""
Kafka's jars and ours beside them: fetched, checked, compiled and archived once, then found.

Their cache folder is named by their sources; a marker is written last, so that an interrupted run
is repeated. One lock holds for every worker and every run of the same tree.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).parent
CACHE = HERE.parent.parent / ".cache" / "kafka"
JAVA_VERSION_MIN = 17
PACKAGES = {"java": "default-jdk-headless", "javac": "default-jdk-headless", "mvn": "maven"}
"""Where each program that we start comes from, in Debian's and Ubuntu's words."""

FETCH_DEADLINE_S = 600
COMPILE_DEADLINE_S = 120
HEAP_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xms64m", "-Xmx384m")
"""For short lives on a small machine: start-up counts, throughput does not."""


class PrerequisiteMissing(Exception):
    pass


class JarsUnusable(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Jars:
    java: str
    lib: Path
    own: Path
    archive: Path

    def class_path(self) -> str:
        """Return the jars in one fixed order, ours last: a class-data archive fits one order."""
        return ":".join(map(str, [*sorted(self.lib.glob("*.jar")), self.own]))

    def command(self, main_class: str, *arguments: str, log4j: str, flags: list[str]) -> list[str]:
        return [
            self.java,
            *HEAP_FLAGS,
            *flags,
            f"-Dlog4j2.configurationFile={(HERE / log4j).as_uri()}",
            "-cp",
            self.class_path(),
            main_class,
            *arguments,
        ]

    @property
    def archived(self) -> list[str]:
        quiet = ["-Xlog:disable", "-Xlog:all=warning:stderr"]
        return ["-Xshare:auto", f"-XX:SharedArchiveFile={self.archive}", *quiet]


def required(*programs: str) -> list[str]:
    """Return the paths of *programs*. Raises `PrerequisiteMissing` with what to install."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        packages = " ".join(sorted({PACKAGES[program] for program in missing}))
        raise PrerequisiteMissing(
            f"needs {' and '.join(missing)} for a real Kafka broker"
            f" (Debian, Ubuntu: apt-get install {packages})"
        )
    return [shutil.which(program) or program for program in programs]


def find_java() -> tuple[str, str]:
    (java,) = required("java")
    done = subprocess.run(
        [java, "-version"], capture_output=True, text=True, check=False, timeout=60
    )
    said = done.stderr.splitlines()[0] if done.stderr else "nothing"
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found is None or int(found[1]) < JAVA_VERSION_MIN:
        raise PrerequisiteMissing(
            f"needs Java {JAVA_VERSION_MIN} or newer for a real Kafka broker, {java} says {said}"
            f" (Debian, Ubuntu: apt-get install {PACKAGES['java']})"
        )
    return java, done.stderr


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


@contextlib.contextmanager
def locked(cache: Path) -> Iterator[None]:
    """Hold the cache lock among all processes; the end of a process frees it."""
    cache.mkdir(parents=True, exist_ok=True)
    (cache / ".gitignore").write_text("*\n")
    with (cache / "lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_fetched(cache: Path, pom: Path) -> bool:
    return (cache / digest(pom.read_bytes()) / "done").is_file()


def fetched(cache: Path, pom: Path, expected: Path) -> Path:
    """Return the folder with all jars of *pom*, digests checked. The caller holds the lock."""
    home = cache / digest(pom.read_bytes())
    lib, marker = home / "lib", home / "done"
    listing = expected.read_text()
    if lib.is_dir() and marker.is_file() and marker.read_text() == listing:
        return lib
    incoming = home / f"incoming-{os.getpid()}"
    for leftover in [*home.glob("incoming-*"), lib]:
        shutil.rmtree(leftover, ignore_errors=True)
    marker.unlink(missing_ok=True)
    incoming.mkdir(parents=True)
    fetch(pom, incoming)
    check_digests(incoming, expected)
    incoming.rename(lib)
    marker.write_text(listing)
    return lib


def run_builder(command: Sequence[str], deadline_s: float, failure: str) -> None:
    """Run Maven or javac; raise `JarsUnusable` with *failure* and the first lines said."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=deadline_s,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).splitlines()[:100])
        raise JarsUnusable(f"{failure}:\n{said}")


def fetch(pom: Path, folder: Path) -> None:
    (mvn,) = required("mvn")
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    command = [mvn, "-B", "-q", "-C", "-f", str(pom), *goal]
    failure = f"Maven could not fetch the jars of {pom} (needs the network, once)"
    run_builder(command, FETCH_DEADLINE_S, failure)


def check_digests(folder: Path, expected: Path) -> None:
    lines = expected.read_text().splitlines()
    wanted = {name: sum_ for sum_, name in map(str.split, lines)}
    present = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in folder.iterdir()}
    wrong = sorted({name for name, _ in wanted.items() ^ present.items()})
    if wrong:
        raise JarsUnusable(
            f"{len(wrong)} of the fetched jars are not as {expected.name} lists them:"
            f" {', '.join(wrong)}"
        )


def compiled(home: Path, lib: Path, files: Sequence[Path]) -> Path:
    """Return the jar compiled from *files* against *lib*. The caller holds the lock."""
    jar = home / f"own-{digest(*(file.read_bytes() for file in files))}.jar"
    if jar.is_file():
        return jar
    (javac,) = required("javac")
    classes = home / "classes"
    shutil.rmtree(classes, ignore_errors=True)
    options = ["--release", str(JAVA_VERSION_MIN), "-Xlint:all", "-Werror", "-d", str(classes)]
    path = ":".join(map(str, sorted(lib.glob("*.jar"))))
    command = [javac, "-J-XX:TieredStopAtLevel=1", *options, "-cp", path, *map(str, files)]
    run_builder(command, COMPILE_DEADLINE_S, f"javac refused {' '.join(map(str, files))}")
    pack(classes, jar)
    return jar


def pack(classes: Path, jar: Path) -> None:
    """Write a jar of everything below *classes*, whole or not at all."""
    unfinished = jar.with_suffix(".unfinished")
    with zipfile.ZipFile(unfinished, "w") as archive:
        for path in sorted(classes.rglob("*.class")):
            archive.write(path, path.relative_to(classes))
    unfinished.rename(jar)
