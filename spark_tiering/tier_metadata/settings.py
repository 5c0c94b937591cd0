"""Settings of an access. Plain values; files are named, never their contents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError
from rlmm.kafka_client.settings import TOPIC

if TYPE_CHECKING:
    from pathlib import Path

_PORT_MAX: Final = 2**16 - 1


@dataclass(frozen=True, slots=True)
class SidecarAccess:
    address: str
    """`host:port`, or the path of its socket: with a slash in it, or behind `unix:`."""
    token_file: str = ""
    """Holds the token to show, and nothing else."""
    ca_file: str = ""
    """Authorities for TLS, where they are not the system's."""
    certificate_file: str = ""
    """Our own certificate with its chain, where the service asks for one."""
    key_file: str = ""
    """Its key, where that is not in the same file."""
    is_tls: bool = False
    """Whether `host:port` is encrypted; it is, too, where one of the files of TLS is named."""
    cluster_id: str = ""
    """Whose metadata, where the service serves several clusters."""
    broker_id: int | None = None
    """Come as this broker and be assigned the partitions; no broker may have the id."""
    timeout_ms: int = 30_000
    """How long it may take until the service is reached and knows its log."""
    is_plaintext_token: bool = False
    """Whether the token is sent to another machine without TLS."""

    def __post_init__(self) -> None:
        if self.socket_path is None:
            host, _, port = self.address.rpartition(":")
            is_port = port.isascii() and port.isdigit() and 0 < int(port) <= _PORT_MAX
            if not host or not is_port or "://" in host:
                msg = f"a service is at host:port or at the /path of a socket, got {self.address!r}"
                raise ConfigError(msg)
        elif self.wants_tls:
            msg = f"the socket {self.socket_path} is not encrypted: TLS is for host:port"
            raise ConfigError(msg)
        if self.key_file and not self.certificate_file:
            msg = f"the key {self.key_file} belongs to a certificate, and none is named"
            raise ConfigError(msg)
        _require_time(self.timeout_ms)

    @property
    def socket_path(self) -> str | None:
        """Return the path of the socket; `None` for an address of TCP."""
        if self.address.startswith("unix:"):
            return self.address.removeprefix("unix:").removeprefix("//")
        return self.address if "/" in self.address and "://" not in self.address else None

    @property
    def host_port(self) -> tuple[str, int]:
        host, _, port = self.address.rpartition(":")
        return host.removeprefix("[").removesuffix("]"), int(port)

    @property
    def wants_tls(self) -> bool:
        """Return whether any setting says that the connection is encrypted."""
        return self.is_tls or bool(self.ca_file or self.certificate_file)


@dataclass(frozen=True, slots=True)
class EmbeddedAccess:
    """An engine in this process, over a log in a folder or over the topic of a cluster."""

    folder: Path | None = None
    """Of an embedded log, which is begun where there is none. One process at a time has it."""
    is_begun: bool = True
    """Off for commands that only read: without a log they read an empty one in memory."""
    partition_count: int | None = None
    """Of a log that is begun; 50 unless said otherwise."""
    bootstrap_servers: str = ""
    """`host:port,...` of the cluster whose metadata topic it is. The topic is never created."""
    command_config: Path | None = None
    """A Java `client.properties` with whatever it takes to get in there."""
    topic: str = TOPIC
    snapshots: Path | None = None
    """A folder where states are kept, so that the next job does not read the whole log again."""
    timeout_ms: int = 60_000
    """How long it may take until the log is reached."""

    def __post_init__(self) -> None:
        if (self.folder is None) == (not self.bootstrap_servers):
            msg = "an embedded engine has the folder of a log or the addresses of a cluster"
            raise ConfigError(msg)
        if self.folder is not None and self.command_config is not None:
            msg = f"{self.command_config} is for a cluster, and the log is in {self.folder}"
            raise ConfigError(msg)
        _require_time(self.timeout_ms)


def _require_time(timeout_ms: int) -> None:
    if timeout_ms <= 0:
        msg = f"the time-out of an access to the metadata must be above 0 ms, got {timeout_ms}"
        raise ConfigError(msg)
