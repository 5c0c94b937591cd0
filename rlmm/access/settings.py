"""Settings of the sections `access` and `tls`, with the reason of each default. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.access.roles import read_grants
from rlmm.base.whole_numbers import require_whole_numbers
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.base.secret import Secret


class UnixRole(StrEnum):
    """The role of a local process that connects to the Unix socket without a token."""

    NONE = "none"
    READER = "reader"
    BROKER = "broker"
    ADMIN = "admin"


class UnassignedWrites(StrEnum):
    """What a client gets that asks to store an event of a partition which is not assigned."""

    STORE = "store"
    REFUSE = "refuse"


class ClientCertificates(StrEnum):
    """Tells whether the service requests certificates of clients."""

    NONE = "none"
    WANTED = "wanted"
    REQUIRED = "required"


class TlsVersion(StrEnum):
    TLS_1_2 = "1.2"
    TLS_1_3 = "1.3"


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Sets which clients may use the service, and how much one client may take."""

    tokens_file: Path | None = None
    """File of tokens: a line `NAME ROLE TOKEN` for each, with `broker:ID` as the role of a token
    that speaks for one broker, and `sha256:` with 64 hexadecimal digits in place of a token.
    Refused where another user may read or change it, see `docs/security.md`. Not set: there are no
    tokens but those of `access.tokens`, so that no client gets in over a network before an operator
    gives it a token."""
    tokens: Secret | None = None
    """The same lines, divided by line breaks or semicolons, for the environment; there is no flag,
    which every user of the machine could read. Taken at the start, while the file is read again
    when it changes. Not set: none."""
    client_names: tuple[str, ...] = ()
    """Names in certificates of clients and the role of each, as `NAME=ROLE` or `NAME=broker:ID`,
    with `URI:`, `DNS:` or `CN:` before the name for its kind. A name without a kind fits all three
    and is warned of. The common name counts only where a certificate has no alternative name, and
    of several the last one. Empty: a certificate alone lets no client in, because an authority that
    signs certificates seldom means to give rights by it."""
    unix_role: UnixRole = UnixRole.ADMIN
    """Role of a client that comes by the Unix socket without a token. The default follows the mode
    of the socket's file: only the user of the service itself may open it, and can do everything
    anyway. `none` asks for a token there, too."""
    plaintext_tokens: bool = False
    """Whether a token is taken that came over a network without TLS, where every machine between
    has read it. For networks that encrypt by themselves; from this machine it is always taken."""
    client_connections_max: int = 1_000
    """Connections at a time of one client, by its name; well below `sidecar.connections_max`, so
    that no client leaves none to others. A client that comes by the Unix socket without a token has
    no such limit."""
    client_requests_per_second_max: int | None = None
    """Requests of one client in a second; more are refused as too busy. Not set: no limit, because
    brokers ask in bursts, and what one connection can hold up is bounded without it."""
    unassigned_writes: UnassignedWrites = UnassignedWrites.STORE
    """What happens to a write that asks to be stored although its partition is not assigned to the
    client's broker, or not to this service. `store`: it is stored, as Kafka does. `refuse`: it is
    refused as not assigned, so that a client has to `assign` the partition to its broker first,
    which the audit log shows. The default is Kafka's, as a broker may write before it has reported
    a new leader."""
    audit: bool = True
    """Whether the logger `rlmm.audit` writes a line for each write, assignment and takeover of a
    client, and for refused credentials, roles and rates. Reads are not logged. On by default: a
    segment takes four writes in its life, and without the lines nothing shows which client deleted
    it."""
    refresh_ms: int = 10_000
    """How often the files of tokens and certificates are looked at; SIGHUP looks at once. A change
    of a mounted secret takes a minute to arrive anyway, and a look is a call or two for each
    file."""

    def __post_init__(self) -> None:
        require_whole_numbers("access.", self, refresh_ms=(100, 2**31 - 1))
        read_grants(self.client_names)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """TLS of TCP listeners, in PEM files that the service reads again when they change."""

    certificate_file: Path | None = None
    """The service's certificate, with those of who signed it behind it. Not set: connections are
    not encrypted."""
    key_file: Path | None = None
    """Its private key, in a file that no other user may read. Not set: it stands in the file of the
    certificate."""
    key_password: Secret | None = None
    """What opens an encrypted private key; given by the environment or a private
    file, as secrets are no flags. Not set: see the next."""
    key_password_file: Path | None = None
    """A file with that password, read again with the key. Not set: the key is not encrypted."""
    client_ca_file: Path | None = None
    """The certificates of the authorities of clients. Not set: clients cannot show one."""
    client_certificates: ClientCertificates = ClientCertificates.NONE
    """`none`: clients show no certificate. `wanted`: they may, in place of a token. `required`: a
    client that shows none does not even get to say hello. The default needs nothing but a
    certificate of the service."""
    version_min: TlsVersion = TlsVersion.TLS_1_2
    """Oldest version that is spoken; older ones are broken, and `1.3` leaves out clients of older
    machines."""

    def __post_init__(self) -> None:
        if self.certificate_file is None:
            for name in ("key_file", "key_password", "key_password_file", "client_ca_file"):
                if getattr(self, name) is not None:
                    msg = f"tls.{name} must stand beside tls.certificate_file, which is not set"
                    raise ConfigError(msg)
        if self.key_password is not None and self.key_password_file is not None:
            raise ConfigError("tls.key_password must not be set beside tls.key_password_file")
        asks = self.client_certificates != ClientCertificates.NONE
        if asks and self.client_ca_file is None:
            msg = (
                f"tls.client_certificates must be {ClientCertificates.NONE} without "
                f"tls.client_ca_file, got {self.client_certificates}"
            )
            raise ConfigError(msg)
        if self.client_ca_file is not None and not asks:
            msg = (
                f"tls.client_ca_file must not be set while tls.client_certificates is "
                f"{ClientCertificates.NONE}"
            )
            raise ConfigError(msg)
