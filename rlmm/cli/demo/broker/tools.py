"""Kafka's own commands, as they are."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

from rlmm.errors import EngineFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.cli.demo.broker.jars import Jars

CONSOLE_CONSUMER: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
_DEADLINE_S: Final = 60.0
_PRINTED: Final = ("partition", "offset", "value")


def consume(jars: Jars, bootstrap: str, topic: str, count: int) -> Iterator[tuple[int, int, str]]:
    """
    What Kafka's console consumer prints of *topic* from the beginning on, committed records alone:
    partition, offset and value of each. Fewer than *count* when no more came for ten seconds.
    """
    shown = [word for name in _PRINTED for word in ("--formatter-property", f"print.{name}=true")]
    command = jars.command(
        CONSOLE_CONSUMER, "--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning",
        "--isolation-level", "read_committed", "--max-messages", str(count),
        "--timeout-ms", "10000", *shown,
    )  # fmt: skip
    done = subprocess.run(  # noqa: S603  # the Java of this machine
        command, capture_output=True, text=True, check=False, timeout=_DEADLINE_S
    )
    if done.returncode != 0:
        raise EngineFailed(f"Kafka's console consumer failed: {done.stderr.strip()[-1_000:]}")
    for line in done.stdout.splitlines():
        partition, offset, value = line.split("\t", 2)
        yield int(partition.rpartition(":")[2]), int(offset.rpartition(":")[2]), value
