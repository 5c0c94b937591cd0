"""Kafka's command line tools, run from the same jars; each is a Java process of about a second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.kafka.process import TOOL_DEADLINE_S, run_java

if TYPE_CHECKING:
    from tests.kafka.jars import Jars

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
ACLS = "org.apache.kafka.tools.AclCommand"
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
STORAGE = "kafka.tools.StorageTool"
METADATA_FORMATTER = (
    "org.apache.kafka.server.log.remote.metadata.storage.serialization."
    "RemoteLogMetadataSerde$RemoteLogMetadataFormatter"
)
METADATA_TOPIC = "__remote_log_metadata"


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of one broker on a listener without security; failures raise `ProcessFailed`."""

    jars: Jars
    bootstrap: str

    def run(self, main_class: str, *arguments: str, deadline_s: float = TOOL_DEADLINE_S) -> str:
        address = ("--bootstrap-server", self.bootstrap)
        return run_java(self.jars, main_class, *address, *arguments, deadline_s=deadline_s).out

    def topics(self, *arguments: str) -> str:
        return self.run(TOPICS, *arguments)

    def configs(self, *arguments: str) -> str:
        return self.run(CONFIGS, *arguments)

    def acls(self, *arguments: str) -> str:
        return self.run(ACLS, *arguments)

    def consume(self, topic: str, count: int, *arguments: str, partition: int = 0) -> str:
        return self.run(
            CONSOLE_CONSUMER,
            *("--topic", topic, "--partition", str(partition), "--offset", "earliest"),
            *("--max-messages", str(count), "--timeout-ms", "20000"),
            *arguments,
        )

    def metadata_events(self, count: int, *, partition: int) -> list[str]:
        how = ("--formatter", METADATA_FORMATTER)
        return self.consume(METADATA_TOPIC, count, *how, partition=partition).splitlines()
