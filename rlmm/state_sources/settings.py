"""Settings of a source: a running service, a cluster, or copied folders. Plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError
from rlmm.state_sources.protocol import StateSourceKind

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Chooses one source: folders before a service, a service before a cluster."""

    log_dirs: tuple[Path, ...] = ()
    sidecar: str = ""
    """`host:port`, or the path of a socket: with a slash in it, or behind `unix:`."""
    cluster_id: str = ""
    token_file: Path | None = None
    is_tls: bool = False
    """Whether `host:port` is encrypted; it is, too, where one of the files of TLS is named."""
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    bootstrap_servers: str = ""
    command_config: Path | None = None
    command_properties: tuple[str, ...] = ()
    """Single properties of a Java client, `KEY=VALUE`, above those of the file."""
    snapshot_cache: Path | None = None
    """Where the state of a cluster's topic is kept for the next command that asks."""
    timeout_s: float = 30.0
    partition_count: int | None = None
    """Of a copied topic whose folders do not contain it."""
    is_plaintext_token: bool = False
    """Whether the token is sent to another machine without TLS."""

    def __post_init__(self) -> None:
        if self.log_dirs and self.sidecar:
            msg = "the state is looked for in --log-dirs or asked of --sidecar: name one of the two"
            raise ConfigError(msg)
        if not (self.log_dirs or self.sidecar or self.bootstrap_servers):
            msg = "nothing is named to look at: --sidecar, --bootstrap-server or --log-dirs"
            raise ConfigError(msg)
        if self.key_file is not None and self.certificate_file is None:
            msg = f"the key {self.key_file} belongs to a certificate, and none is named"
            raise ConfigError(msg)

    @property
    def kind(self) -> StateSourceKind:
        if self.log_dirs:
            return StateSourceKind.FOLDERS
        return StateSourceKind.SIDECAR if self.sidecar else StateSourceKind.KAFKA
