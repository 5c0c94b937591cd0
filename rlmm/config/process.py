"""Settings of the process as a whole, with the reason of each default. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rlmm.base.native_core import ShardEngine
from rlmm.base.whole_numbers import require_whole_numbers
from rlmm.errors import ConfigError, InvalidArgument
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.ids import TopicIdPartition, Uuid

_INT32_MAX = 2**31 - 1
_CLUSTER = re.compile(r"cluster:([0-9]{1,10})", re.ASCII)
_RANGE = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?", re.ASCII)
_USER_PARTITION = re.compile(r"([A-Za-z0-9_-]{22}):(.+)-([0-9]{1,10})", re.ASCII)
_METADATA_PARTITIONS_MAX = 100_000
"""Far above any topic; a range that is longer is a slip."""


class LogKind(StrEnum):
    FILES = "files"
    """In our own data folder, durable, in Kafka's form; no broker is needed."""
    KAFKA = "kafka"
    """In the metadata topic of a Kafka cluster."""
    MEMORY = "memory"
    """Nowhere: they are gone with the process. For trying things out."""


class ServiceMode(StrEnum):
    SERVE = "serve"
    OBSERVER = "observer"
    """Writes are refused and no producer exists: READ and DESCRIBE on the topic are enough."""


class AssignmentKind(StrEnum):
    ALL = "all"
    NONE = "none"
    LIST = "list"
    BROKER = "broker"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    data_dir: Path = Path("rlmm-data")
    """Folder of the embedded log and of the snapshots, beside where the service is started: the
    service runs with no configuration and without rights on the rest of the machine."""
    mode: ServiceMode | None = None
    """`serve` takes writes, `observer` refuses them. Not set: `observer` with `log.kind = kafka`,
    because a new tool is attached to a cluster only when it cannot write, and `serve` else."""
    assignment: str = "all"
    """Which user partitions are answered for: `all`, `none`, those of `partitions` (`list`), those
    that brokers report over the frame protocol (`broker`), or those that broker N leads and
    follows by the cluster's own metadata (`cluster:N`). Until the first report or answer every
    question is refused as not ready. `cluster:N` needs DESCRIBE and
    DESCRIBE_CONFIGS on all tiered topics: Kafka hides the others. Every service holding all needs
    no coordination."""
    assignment_refresh_ms: int = 30_000
    """With `assignment = cluster:N`: how often the cluster is asked what broker N leads and follows
    now; until it answers for the first time, sooner. A new replica is answered for that much later;
    it has no tier of its own before."""
    copy_disabled_warn_ms: int = 3_600_000
    """With `log.kind = kafka`: after how long a tiered topic with `remote.log.copy.disable=true` is
    warned of, in a log line, a metric and `/v1/status`. Jobs that tier a live cluster stop copying
    for minutes; one that died leaves it so, and disks grow. Topics without DESCRIBE_CONFIGS for us
    are not seen."""
    partitions: tuple[str, ...] = ()
    """With `assignment = list`: metadata partitions, as numbers or ranges (`0-7`, both ends
    included), and user partitions as `TOPIC_ID:TOPIC-PARTITION`."""
    engine: ShardEngine = ShardEngine.AUTO
    """What holds the state: `native` is the core of `rlmm-native`, `python` needs nothing beside
    rlmm, and `auto` is the core where it is installed in rlmm's version, else Python: an
    installation without the core works. Both answer the same and read each other's snapshots.
    `native` without the core ends the start."""
    shutdown_timeout_ms: int = 25_000
    """Longest time between the signal to stop and the end of the process; what has not ended by
    then is named. Below the 30 s after which Kubernetes kills."""

    def __post_init__(self) -> None:
        if not str(self.data_dir).strip() or "\0" in str(self.data_dir):
            msg = f"data_dir must be a folder, got {str(self.data_dir)!r}"
            raise ConfigError(msg)
        require_whole_numbers("", self)
        kind = self.assignment_kind
        if kind is AssignmentKind.LIST and not self.partitions:
            msg = "assignment is list, so partitions must name at least one"
            raise ConfigError(msg)
        if kind is not AssignmentKind.LIST and self.partitions:
            msg = f"partitions are for assignment = list, and assignment is {self.assignment}"
            raise ConfigError(msg)
        self.listed()

    @property
    def assignment_kind(self) -> AssignmentKind:
        if _CLUSTER.fullmatch(self.assignment):
            return AssignmentKind.CLUSTER
        for kind in AssignmentKind:
            if kind == self.assignment and kind is not AssignmentKind.CLUSTER:
                return kind
        msg = (
            "assignment must be one of all, none, list, broker, cluster:N with the number of a "
            f"broker, got {self.assignment!r}"
        )
        raise ConfigError(msg)

    @property
    def cluster_broker(self) -> int | None:
        match = _CLUSTER.fullmatch(self.assignment)
        return None if match is None else _numbered("assignment", match.group(1))

    def listed(self) -> Assignment:
        """Return the assignment at the start; empty for `broker` and `cluster`."""
        _ = self.cluster_broker
        if self.assignment_kind is AssignmentKind.ALL:
            return Assignment.everything()
        if self.assignment_kind in {AssignmentKind.BROKER, AssignmentKind.CLUSTER}:
            return Assignment.awaited()
        metadata: set[int] = set()
        user: set[TopicIdPartition] = set()
        for text in self.partitions:
            if _RANGE.fullmatch(text):
                metadata.update(_range(text))
            else:
                user.add(_user_partition(text))
        return Assignment(frozenset(metadata), frozenset(user))


@dataclass(frozen=True, slots=True)
class LogChoice:
    kind: LogKind = LogKind.FILES
    """`files`, `kafka` or `memory`. Not set: `kafka` when anything of the section `kafka` is set,
    because who names a cluster means it, else `files`, which needs nothing. Keys of two kinds at
    once are refused."""
    num_partitions: int | None = None
    """Metadata partitions of an embedded log that is begun, and what one that is there must have;
    with `kafka` that is `kafka.remote.log.metadata.topic.num.partitions`. Not set: 50 for a new
    one, as Kafka does, and any for one that is there."""

    def __post_init__(self) -> None:
        require_whole_numbers("log.", self, num_partitions=(1, _METADATA_PARTITIONS_MAX))


def _numbered(key: str, digits: str) -> int:
    number = int(digits)
    if number > _INT32_MAX:
        msg = f"{key} must number from 0 to {_INT32_MAX}, got {digits}"
        raise ConfigError(msg)
    return number


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    low = _numbered("partitions", first)
    high = _numbered("partitions", last) if last else low
    if not low <= high < low + _METADATA_PARTITIONS_MAX:
        msg = f"partitions must be ranges of rising numbers, got {text!r}"
        raise ConfigError(msg)
    return range(low, high + 1)


def _user_partition(text: str) -> TopicIdPartition:
    match = _USER_PARTITION.fullmatch(text)
    if match is None:
        msg = (
            "partitions must be numbers or ranges of metadata partitions, or user partitions as "
            f"TOPIC_ID:TOPIC-PARTITION, got {text!r}"
        )
        raise ConfigError(msg)
    topic_id, topic, partition = match.groups()
    try:
        return TopicIdPartition(Uuid.parse(topic_id), topic, _numbered("partitions", partition))
    except InvalidArgument as error:
        msg = f"partitions: {text!r}: {error}"
        raise ConfigError(msg) from error
