"""
Kafka's own classes beside rlmm: the program of `bench/jvm`, built once by Maven into the cache of
the tests' jars, and run in a Java process of its own.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.kafka.jars import (
    CACHE,
    FETCH_DEADLINE_S,
    JarsUnusable,
    PrerequisiteMissing,
    digest,
    find_java,
    locked,
    required,
    run_builder,
)

if TYPE_CHECKING:
    from bench.native_stream import Stream

PROJECT = Path(__file__).parent / "jvm"
MAIN_CLASS = "io.rlmm.bench.KafkaClasses"
HEAP = ("-Xms6g", "-Xmx6g")
"""As a broker that has memory to spare; the collector is Java's default."""
DEADLINE_S = 900.0


class KafkaClasses:
    def __init__(self, java: str, lib: Path) -> None:
        self._java = java
        self._lib = lib

    @classmethod
    def built(cls, cache: Path = CACHE) -> KafkaClasses:
        """Raises `PrerequisiteMissing` or `JarsUnusable` where it cannot be built."""
        java, _ = find_java()
        sources = [PROJECT / "pom.xml", *sorted(PROJECT.glob("src/**/*.java"))]
        made = cache / f"bench-{digest(*(file.read_bytes() for file in sources))}"
        with locked(cache):
            if not (made / "done").is_file():
                mvn, _ = required("mvn", "javac")
                command = [mvn, "-B", "-q", "-f", str(PROJECT / "pom.xml"), "package",
                           f"-Dbuilt={made}"]  # fmt: skip
                run_builder(command, FETCH_DEADLINE_S, f"Maven could not build {PROJECT.name}")
                (made / "done").touch()
        return cls(java, made / "lib")

    def apply(
        self, stream: Stream, per_batch: int, events: int, passes: int, hot: int
    ) -> dict[str, Any]:
        return self._run(
            HEAP, "apply", stream.sets_file(per_batch), events, stream.partitions_file,
            stream.questions_file, passes, hot,
        )  # fmt: skip

    def grow(self, stream: Stream, per_batch: int, events: int, heap_mb: int) -> dict[str, Any]:
        heap = (f"-Xmx{heap_mb}m",)
        return self._run(heap, "grow", stream.sets_file(per_batch), events, stream.partitions_file)

    def follow(self, bootstrap: str, topic: str, events: int, partitions: Path) -> dict[str, Any]:
        return self._run(HEAP, "follow", bootstrap, topic, events, partitions)

    def _run(self, flags: tuple[str, ...], *arguments: object) -> dict[str, Any]:
        command = [self._java, *flags, "-cp", f"{self._lib}/*", MAIN_CLASS, *map(str, arguments)]
        done = subprocess.run(  # noqa: S603 - our own program
            command, capture_output=True, text=True, check=False, timeout=DEADLINE_S
        )
        if done.returncode != 0:
            msg = f"{MAIN_CLASS} has ended with {done.returncode}:\n{done.stderr[-2_000:]}"
            raise RuntimeError(msg)
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def kafka_classes() -> tuple[KafkaClasses | None, str]:
    """Return the program, or why there is none."""
    try:
        return KafkaClasses.built(), ""
    except (PrerequisiteMissing, JarsUnusable) as error:
        return None, str(error)
