"""The settings of HTTP, and why each default is what it is. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.base.whole_numbers import require_whole_numbers
from rlmm.broker_files.sealed_files import SECRET_TOPICS, is_served
from rlmm.errors import ConfigError
from rlmm.kafka_client.settings import address_of

if TYPE_CHECKING:
    from pathlib import Path

_PORT_MAX = 2**16 - 1
_PATTERN = re.compile(r"[A-Za-z0-9._*?\[\]!-]{1,249}")
NOWHERE = "none"
"""An address that says that nothing is listened to."""
NO_FILE = "none"
"""A path that says that no token is made."""
FILE_NAME = "http.token"
"""Of the file of the token in the data folder, where no path is said."""


class LocalRole(StrEnum):
    NONE = "none"
    READER = "reader"


@dataclass(frozen=True, slots=True)
class HttpSettings:
    listen: str = "127.0.0.1:7405"
    """`host:port` where HTTP is spoken, `none` for nowhere; port 0 takes a free one, which is
    logged. The default is for this machine alone, so that nothing is reachable over a network
    before an operator decides that; containers need `0.0.0.0:7405`, or probes do not reach them."""
    tls: bool = True
    """Whether HTTP is encrypted where `tls.certificate_file` is set. `false` is for probes that
    have no client certificate where `tls.client_certificates` asks for one."""
    local_role: LocalRole = LocalRole.NONE
    """What `/v1` allows without a token while `listen` is an address of this machine only: nothing,
    because other users of the machine, and every client that a proxy on it lets through, come from
    there as well. `reader` opens it to all of them. Off this machine a token is always
    needed."""
    token_file: str | None = None
    """File with a token of the role reader, which the service makes at its first start, for its own
    user alone (mode 0600); remove it and start anew for another one. `none` makes none. Not set:
    `http.token` in `data_dir`, so that a user who may open the Unix socket can ask by HTTP as well
    without configuring anything."""
    health_open: bool = True
    """Whether `/livez`, `/readyz` and `/startupz` need no token: a kubelet has none. They name
    partitions and errors, and nothing of what is stored."""
    metrics_open: bool = True
    """Whether `/metrics` needs no token. `false` asks for one, which Prometheus can be given; for
    networks where figures are confidential."""
    partition_metrics: bool = True
    """Whether figures of single metadata partitions are among the metrics: some twenty series for
    each of them, of which a topic has 50 by default. `false` leaves the totals of each cluster."""
    user_partitions_max: int | None = None
    """User partitions that have metrics of their own, in the order of their first event; as many
    as this and no more, since a cluster may have more of them than a Prometheus wants series. Not
    set: none."""
    connections_max: int = 256
    """Connections at a time; for one more the one is closed that has been without a request for
    longest, so that silent ones keep no probe out. One of eight is kept for those who ask nothing
    of `/v1`. Far above what probes, scrapes and people need, and far below what would harm the
    brokers' own connections."""
    head_timeout_ms: int = 5_000
    """How long the first request of a connection may take to come, and each later one from its
    first byte to the end of its head; probes and people send theirs at once."""
    idle_timeout_ms: int = 75_000
    """A connection that has asked before and does not ask again is closed after so long; longer
    than Prometheus and common proxies keep theirs, so that the side that asks is the one to close
    it."""
    body_timeout_ms: int = 10_000
    """How long a client may take to send what belongs to its request."""
    slow_client_ms: int = 30_000
    """How long a client may leave a part of a long answer before it is cut off."""
    wait_timeout_ms_max: int = 60_000
    """Longest `timeout_ms` that a question may ask for; more than that is a thing of pollers."""
    client_max_size: int = 1024 * 1024
    """Largest body of a request: some five thousand look-ups."""
    lookups_max: int = 1_000
    """Look-ups in one request: some milliseconds, for which other clients wait."""
    heartbeat_age_ms_max: int = 60_000
    """When no metadata partition of an engine was looked at for so long, `/livez` says that the
    process does not work, and systemd's watchdog hears nothing any more: the supervisor starts it
    anew. Looked at is every `pump.bounds_interval_ms`, which must not be above a third of this; a
    machine that is overloaded for half a minute is no reason."""
    stop_timeout_ms: int = 1_000
    """How long answers under way may take at the very end, after everything else has ended."""

    def __post_init__(self) -> None:
        require_whole_numbers("http.", self, lookups_max=(1, 10_000))
        _ = self.address

    @property
    def address(self) -> tuple[str, int] | None:
        if self.listen == NOWHERE:
            return None
        host, colon, port = self.listen.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            colon = ""
        is_number = port.isascii() and port.isdigit() and len(port) <= 5
        if not (host and colon and is_number and int(port) <= _PORT_MAX):
            msg = f"http.listen must be host:port or {NOWHERE}, got {self.listen!r}"
            raise ConfigError(msg)
        return host, int(port)


@dataclass(frozen=True, slots=True)
class BrokerLogSettings:
    """Names the log folders of this machine's brokers that HTTP serves, to be read only."""

    folders: tuple[str, ...] = ()
    """Log folders of the brokers of this machine, as in their `log.dirs`, for copies of segments by
    jobs that do not see these disks. A reader may read the records of every user's topic in them,
    as far as their segments are rolled and end at or below the last stable offset; nothing is ever
    written there. Empty: none, so that no client that was let in for the metadata sees a record."""
    bootstrap_servers: tuple[str, ...] = ()
    """`host:port` of brokers that are asked for last stable offsets; it takes DESCRIBE on the
    topics. Empty: those of `kafka.bootstrap.servers`; needed where the log is not Kafka's, and
    where several clusters are served."""
    command_config: Path | None = None
    """A Java `client.properties` for those servers. Not set: they are asked without any."""
    stable_age_ms_max: int = 5_000
    """How long a last stable offset counts that the cluster has told, and how long it is not asked
    again when it did not tell. They only rise, so an old one keeps back segments that could be
    read, and never shows one that may not."""
    ask_timeout_ms: int = 10_000
    """How long the cluster may take to tell one; then nothing of the partition is served."""
    reads_max: int = 16
    """Reads of these disks under way at a time, each in a thread; others wait for their turn. More
    than disks do at once, and no more than a disk that hangs may hold."""
    read_timeout_ms: int = 10_000
    """How long one read of a disk may take, of 512 KiB at most, and how long it may wait for its
    turn; then the answer is given up, and not the service."""
    topics: tuple[str, ...] = ("*",)
    """Names or patterns of the topics whose segments are served, with `*`, `?` and `[...]`. Kafka's
    own topics never are."""
    without_topics: tuple[str, ...] = SECRET_TOPICS
    """Names or patterns of topics that are not served, although `topics` names them. The default
    leaves out topics in which Kafka Connect, MirrorMaker and schema registries keep passwords and
    schemas; a list of the operator replaces it."""

    def __post_init__(self) -> None:
        """Refuse a setting that cannot work, naming the key."""
        for folder in self.folders:
            if not folder.startswith("/") or "\0" in folder:
                msg = f"broker_log.folders must be absolute paths, got {folder!r}"
                raise ConfigError(msg)
        if len(set(self.folders)) < len(self.folders):
            msg = f"broker_log.folders must be named once each, got {', '.join(self.folders)}"
            raise ConfigError(msg)
        for name, patterns in (("topics", self.topics), ("without_topics", self.without_topics)):
            for one in patterns:
                if _PATTERN.fullmatch(one) is None:
                    msg = f"broker_log.{name} must be names or patterns of topics, got {one!r}"
                    raise ConfigError(msg)
        for server in self.bootstrap_servers:
            try:
                address_of(server)
            except ConfigError as error:
                msg = f"broker_log.bootstrap_servers must be host:port, got {server!r}"
                raise ConfigError(msg) from error
        if self.command_config is not None and not self.bootstrap_servers:
            msg = (
                "broker_log.command_config must stand beside broker_log.bootstrap_servers, which "
                "is not set"
            )
            raise ConfigError(msg)
        require_whole_numbers("broker_log.", self, reads_max=(1, 256))

    def serves(self, topic: str) -> bool:
        """Return whether segments of *topic* are served, by its name."""
        return is_served(topic, self.topics, self.without_topics)
