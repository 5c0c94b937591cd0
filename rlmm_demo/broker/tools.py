"""Tools of Kafka: its own commands, run at one broker."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

from rlmm.errors import EngineFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlmm_demo.broker.jars import KafkaJars

_CLASSES: Final = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}
_DEADLINE_S: Final = 60.0
_PRINTED: Final = ("partition", "offset", "value")


class KafkaTools:
    def __init__(self, jars: KafkaJars, bootstrap: str) -> None:
        self._jars = jars
        self._bootstrap = bootstrap

    def run(self, name: str, words: Sequence[str], *more: str) -> str:
        """Return the output of `kafka-<name>`; the demo does not show *more*."""
        command = self._jars.command(
            _CLASSES[name], "--bootstrap-server", self._bootstrap, *words, *more
        )
        done = subprocess.run(  # noqa: S603  # the Java of this machine
            command, capture_output=True, text=True, check=False, timeout=_DEADLINE_S
        )
        if done.returncode != 0:
            told = (done.stderr.strip() or done.stdout.strip())[-1_000:]
            raise EngineFailed(f"{shown(name, words)} failed: {told}")
        return done.stdout

    def consume(self, words: Sequence[str], count: int) -> Iterator[tuple[int, int, str]]:
        """Return partition, offset and value of *count* records, fewer after 10 s without one."""
        printed = [
            word for one in _PRINTED for word in ("--formatter-property", f"print.{one}=true")
        ]
        end = ("--max-messages", str(count), "--timeout-ms", "10000")
        for line in self.run("console-consumer", words, *end, *printed).splitlines():
            partition, offset, value = line.split("\t", 2)
            yield int(partition.rpartition(":")[2]), int(offset.rpartition(":")[2]), value


def shown(name: str, words: Sequence[str]) -> str:
    return f"kafka-{name} --bootstrap-server broker:9092 {' '.join(words)}"
