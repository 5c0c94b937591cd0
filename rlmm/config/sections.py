"""Sections of the configuration: a plain frozen value of each package that it configures."""

from dataclasses import dataclass
from pathlib import Path

from rlmm.access.settings import AccessSettings, TlsSettings
from rlmm.config.process import LogChoice, LogKind, ProcessSettings
from rlmm.gate.settings import GateSettings
from rlmm.http.settings import BrokerLogSettings, HttpSettings
from rlmm.kafka_client.settings import KafkaSettings
from rlmm.partition_log.settings import LogSettings
from rlmm.pump.memory_budget import MemorySettings
from rlmm.pump.settings import PumpSettings, WriteSettings
from rlmm.sidecar.settings import SidecarSettings
from rlmm.snapshot.settings import SnapshotSettings
from rlmm.telemetry.settings import LoggingSettings


@dataclass(frozen=True, slots=True)
class KafkaFiles:
    command_config: Path | None = None
    """A Java `client.properties`, as Kafka's tools take it; its keys stand below those of the
    configuration file. What it holds and we have no equivalent for is told in one line. Not set:
    none is read."""
    server_properties: Path | None = None
    """A broker's `server.properties`: what it gives to its own metadata manager under
    `rlmm.config.`, and the address of `remote.log.metadata.manager.listener.name`. It stands below
    everything else. Not set: none is read."""
    sasl_oauthbearer_token_endpoint_url: str | None = None
    """Where the tokens of OAUTHBEARER come from: a `file:` URL, read anew for each connection, so
    that the program that renews the token writes it there. Endpoints that are asked by HTTP are
    refused. Not set: OAUTHBEARER cannot be used."""


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration. *kafka* is None unless the log is Kafka's."""

    process: ProcessSettings
    log: LogChoice
    memory: MemorySettings
    logging: LoggingSettings
    files: LogSettings
    kafka: KafkaSettings | None
    kafka_files: KafkaFiles
    pump: PumpSettings
    write: WriteSettings
    gate: GateSettings
    snapshot: SnapshotSettings
    sidecar: SidecarSettings
    http: HttpSettings
    broker_log: BrokerLogSettings
    access: AccessSettings
    tls: TlsSettings


PREFIXES = {"process": "", "kafka_files": "kafka"}
"""What the keys of a section begin with, where it is not the section's name."""
DOTTED = {"kafka", "kafka_files"}
"""Sections whose keys are spelled as Kafka spells its own."""
OF_A_CLUSTER = {"log", "files", "kafka", "kafka_files", "pump", "write", "gate", "snapshot"}
"""Sections of which each cluster has its own, where one process serves several; every other one
belongs to the process."""
PROCESS_KEYS_OF_A_CLUSTER = {
    "mode",
    "assignment",
    "assignment_refresh_ms",
    "copy_disabled_warn_ms",
    "partitions",
}
"""The fields of the section `process` of which that is true, too."""
KIND_OF_SECTION = {"files": LogKind.FILES, "kafka": LogKind.KAFKA, "kafka_files": LogKind.KAFKA}
"""Sections that belong to one kind of log; they stay unset with every other one."""
