"""Settings of a source: plain values without secrets."""

from __future__ import annotations

from dataclasses import dataclass

from rlmm.errors import ConfigError


@dataclass(frozen=True, slots=True)
class LogDirSettings:
    """Log folders of brokers, or copies of them, by paths that driver and executors see alike."""

    folders: tuple[str, ...]
    """Each as in `log.dirs`: the folder that holds the folders of partitions."""

    def __post_init__(self) -> None:
        if not self.folders or not all(self.folders):
            msg = "a source of log folders names at least one, by its path"
            raise ConfigError(msg)


@dataclass(frozen=True, slots=True)
class SidecarSourceSettings:
    """Sidecars of broker hosts that serve their segments; files are named, never their content."""

    addresses: tuple[str, ...]
    """`https://host:port` of each."""
    ca_file: str = ""
    """Authorities for TLS, where they are not the system's."""
    certificate_file: str = ""
    """Our own certificate with its chain, where the sidecars ask for one."""
    key_file: str = ""
    token_file: str = ""
    """Holds the token to show, read where it is used."""
    timeout_ms: int = 30_000
    """The longest silence of a sidecar."""
    is_plaintext_token: bool = False
    """Whether the token is sent to another machine by HTTP without TLS."""

    def __post_init__(self) -> None:
        if not self.addresses or not all(self.addresses):
            msg = "a source of sidecars names at least one, by its address"
            raise ConfigError(msg)
        if self.timeout_ms <= 0:
            msg = f"the time-out of a sidecar has to be positive, got {self.timeout_ms}"
            raise ConfigError(msg)
