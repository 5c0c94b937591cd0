"""
Settings of the `kafka` log: addresses, security, the topic, limits. Values only, no I/O.

Fields and errors use Kafka's own keys, underscores for dots. The constructors check every value,
and no text form shows a secret.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from rlmm.base.topic_names import is_topic_name
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from rlmm.base.secret import Secret
    from rlmm.kafka_client.security.client_options import TokenProvider

_Choice = TypeVar("_Choice", bound=StrEnum)

TOPIC = "__remote_log_metadata"
PARTITION_COUNT = 50
"""Partitions that Kafka gives the topic when nothing is configured."""

_INT16_MAX = 2**15 - 1
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1
_PORT_MAX = 2**16 - 1


class SecurityProtocol(StrEnum):
    """Tells how a connection is encrypted, and whether a user logs in."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def is_tls(self) -> bool:
        return self in {SecurityProtocol.SSL, SecurityProtocol.SASL_SSL}

    @property
    def is_sasl(self) -> bool:
        return self in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}


class SaslMechanism(StrEnum):
    """The ways in which a user logs in."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"


class FetchPath(StrEnum):
    """Tells how records are fetched."""

    AUTO = "auto"
    RAW = "raw"
    GETMANY = "getmany"
    """The former fallback through aiokafka's consumer: parsed, and refused by name."""


def _require(key: str, value: int, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        raise ConfigError(f"{key} must be a whole number from {low} to {high}, got {value!r}")


def _choice(key: str, kind: type[_Choice], value: str) -> _Choice:
    try:
        return kind(value)
    except ValueError as error:
        raise ConfigError(f"{key} must be one of {', '.join(kind)}, got {value!r}") from error


@dataclass(frozen=True, slots=True)
class SecuritySettings:
    """
    How the service logs in to the brokers, and how it verifies their certificates.

    Files are PEM, or key stores of Java: the truststore has the certificates that sign the brokers'
    (default: the system's), the keystore our private key and certificate chain for mutual TLS.
    """

    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    """How connections are encrypted, and whether a user is named; the default is Kafka's."""
    sasl_mechanism: SaslMechanism | None = None
    """
    SASL mechanism of the user: required with a SASL protocol, and refused without one. Not set: no
    user logs in.
    """
    sasl_username: str | None = None
    """The user of PLAIN and SCRAM. Not set: the user of `sasl.jaas.config`."""
    sasl_password: Secret | None = None
    """That user's password, given by environment variable or a private file: there is no flag,
    because other users of the machine could read it. Not set: that of the
    `sasl.jaas.config`."""
    token_provider: TokenProvider | None = field(default=None, repr=False)
    """Gives the tokens of OAUTHBEARER."""
    ssl_truststore_location: str | None = None
    """
    File with the certificates that sign the brokers': PEM, or a store of Java, PKCS12 or JKS. Not
    set: the system's.
    """
    ssl_truststore_password: Secret | None = None
    """
    Password of a truststore that is no PEM. Not set: a JKS store is read without it, unverified; a
    PKCS12 store only if it has no password.
    """
    ssl_keystore_location: str | None = None
    """File with our private key and its certificates, where brokers ask for one: PEM, or a store of
    Java's, PKCS12 or JKS. Not set: we show none."""
    ssl_keystore_password: Secret | None = None
    """Password of a keystore that is no PEM. Not set: it has none."""
    ssl_key_password: Secret | None = None
    """
    Password of an encrypted private key. Not set: the key is not encrypted, or, in a store of Java,
    has the password of the store.
    """
    ssl_endpoint_identification_algorithm: str = "https"
    """Empty: a broker's certificate may be made out for any name, which is warned of: the owner of
    any certificate of a trusted authority can then pose as a broker."""

    def __post_init__(self) -> None:
        protocol = _choice("security.protocol", SecurityProtocol, self.security_protocol)
        object.__setattr__(self, "security_protocol", protocol)
        if self.ssl_endpoint_identification_algorithm not in {"https", ""}:
            raise ConfigError(
                "ssl.endpoint.identification.algorithm must be https or empty, "
                f"got {self.ssl_endpoint_identification_algorithm!r}"
            )
        if protocol.is_sasl:
            self._require_user()
        elif self.sasl_mechanism is not None:
            raise ConfigError(
                f"sasl.mechanism is {self.sasl_mechanism}, but security.protocol is {protocol}: "
                "set SASL_SSL or SASL_PLAINTEXT, or no mechanism"
            )

    def _require_user(self) -> None:
        mechanism = _choice("sasl.mechanism", SaslMechanism, self.sasl_mechanism or "")
        object.__setattr__(self, "sasl_mechanism", mechanism)
        if mechanism is SaslMechanism.OAUTHBEARER:
            missing = "a token provider" if self.token_provider is None else None
        elif self.sasl_username is None or self.sasl_password is None:
            missing = "sasl.username and sasl.password"
        else:
            missing = None
        if missing is not None:
            raise ConfigError(f"sasl.mechanism {mechanism} needs {missing}")


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The metadata topic as expected, and as created on request; the defaults are Kafka's."""

    name: str = TOPIC
    """Kafka has one name for it; another one is for copies that were made of it."""
    num_partitions: int | None = None
    """How many partitions the topic must have. Not set: it is taken as it is, and where it is
    created it gets 50."""
    is_created: bool = False
    """
    Whether the topic is created when it does not exist. It is never created again where snapshots
    show that it existed: see lost topic in operating.md.
    """
    replication_factor: int = 3
    """Of the topic when it is created; Kafka's `remote.log.metadata.topic.replication.factor`."""
    retention_ms: int = -1
    """
    Of the topic when it is created, -1 for ever: deleted events make data in the tier unreadable.
    Kafka's `remote.log.metadata.topic.retention.ms`.
    """
    min_isr: int = 2
    """Of the topic when it is created; Kafka's `remote.log.metadata.topic.min.isr`."""

    def __post_init__(self) -> None:
        """Refuse values that Kafka's manager would refuse, naming its key."""
        if not is_topic_name(self.name):
            raise ConfigError(
                "the name of the metadata topic must be 1 to 249 letters of ASCII, digits, "
                f"'.', '_' or '-', got {self.name!r}"
            )
        prefix = "remote.log.metadata.topic"
        if self.num_partitions is not None:
            _require(f"{prefix}.num.partitions", self.num_partitions, 1, _INT32_MAX)
        _require(f"{prefix}.replication.factor", self.replication_factor, 1, _INT16_MAX)
        _require(f"{prefix}.min.isr", self.min_isr, 1, _INT16_MAX)
        if self.retention_ms != -1:
            _require(f"{prefix}.retention.ms", self.retention_ms, 1, _INT64_MAX)


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """All settings of the `kafka` log; only the addresses have no default."""

    bootstrap_servers: tuple[str, ...]
    """`host:port` each; any that answers is enough. Not set: the log is not Kafka's."""
    security: SecuritySettings = field(default_factory=SecuritySettings)
    topic: TopicSettings = field(default_factory=TopicSettings)
    node_id: str = "rlmm"
    """Stands in the client ids, where Kafka's own manager has the id of its broker."""
    is_learned: bool = False
    """Whether a broker provides the addresses later."""
    cluster_id: str | None = None
    """Which cluster it has to be, where that is known before: in another one nothing is created."""
    is_observer: bool = True
    """Whether nothing is ever written: then no producer exists, READ and DESCRIBE are enough."""
    fetch_path: FetchPath = FetchPath.AUTO
    """
    How records are fetched: `auto` and `raw` are the same. `getmany` is refused: the fallback
    through the client library's consumer is gone.
    """
    request_timeout_ms: int = 30_000
    """Longest wait for the answer to one request."""
    socket_connection_setup_timeout_ms: int = 10_000
    """Longest wait for a connection; Kafka's."""
    connections_max_idle_ms: int = 540_000
    """Age at which an unused connection is closed, before a broker does at ten minutes; Kafka's."""
    fetch_max_wait_ms: int = 250
    """Longest wait of a broker for new records; a reader that joins waits no longer than this."""
    fetch_max_bytes: int = 4 * 1024 * 1024
    """Most bytes in one answer, over all partitions; one batch comes through, however large."""
    max_request_size: int = 1024 * 1024
    """Most bytes of one batch that is appended."""
    buffer_memory: int = 32 * 1024 * 1024
    """Most bytes of events that wait to be appended."""
    pending_appends_max: int = 10_000
    """Most events that wait to be appended."""

    def __post_init__(self) -> None:
        if isinstance(self.bootstrap_servers, str):
            listed = [server.strip() for server in self.bootstrap_servers.split(",")]
            object.__setattr__(self, "bootstrap_servers", tuple(filter(None, listed)))
        if not self.bootstrap_servers and not self.is_learned:
            raise ConfigError("bootstrap.servers must name at least one host:port")
        for server in self.bootstrap_servers:
            address_of(server)
        if self.is_observer and self.topic.is_created:
            msg = "an observer writes nothing, so it cannot create the topic: set only one of them"
            raise ConfigError(msg)
        path = _choice("fetch.path", FetchPath, self.fetch_path)
        if path is FetchPath.GETMANY:
            raise ConfigError(
                "fetch.path is getmany, but the fallback through aiokafka's consumer is gone: "
                "set fetch.path to auto or raw"
            )
        object.__setattr__(self, "fetch_path", path)
        for key in (
            "request_timeout_ms",
            "socket_connection_setup_timeout_ms",
            "connections_max_idle_ms",
            "fetch_max_wait_ms",
            "fetch_max_bytes",
            "max_request_size",
            "buffer_memory",
            "pending_appends_max",
        ):
            _require(key.replace("_", "."), getattr(self, key), 1, _INT32_MAX)

    def client_id(self, role: str) -> str:
        """Return the client id of Kafka's own manager in this role: consumer, producer, admin."""
        return f"{self.topic.name}_client_{self.node_id}_{role}"


def address_of(server: str) -> tuple[str, int]:
    """Host and port of `host:port`; a host of colons stands in brackets."""
    host, colon, port = server.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) <= _PORT_MAX):
        raise ConfigError(f"bootstrap.servers must be host:port, got {server!r}")
    return host, int(port)
