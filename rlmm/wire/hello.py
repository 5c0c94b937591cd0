"""
Hello, the first request of a connection, and its answer: peers, version, limits.

Both sides ignore unknown keys: a newer side may send more about itself.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Final

from rlmm.errors import UnsupportedVersion
from rlmm.wire.framing import FRAME_BYTES_MAX
from rlmm.wire.value_checks import array, mapping, refuse, text, uint31, uuid

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.metadata.ids import Uuid

VERSIONS: Final = (1,)
"""The versions of the protocol that this side speaks, rising."""
VERSIONS_MAX: Final = 64
CLIENT_CHARS_MAX: Final = 256
TOKEN_CHARS_MAX: Final = 4_096
CLUSTER_ID_CHARS_MAX: Final = 256
BOOTSTRAP_CHARS_MAX: Final = 4_096
MODES: Final = ("serve", "observer")
ROLES: Final = ("reader", "broker", "admin")
"""What a session may be, rising: each may all that the one before may."""


@dataclass(frozen=True, slots=True)
class ClientHello:
    versions: tuple[int, ...]
    client: str
    token: str | None = field(default=None, repr=False)
    cluster_id: str | None = None
    broker_id: int | None = None
    """Given: the session is a broker's, and is answered for what that broker was assigned."""
    instance: Uuid | None = None
    """One start of the broker: another one begins without an assignment."""
    bootstrap: str | None = None
    """Where the broker's cluster can be reached, for a service that was not told."""


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    frame_bytes_max: int = FRAME_BYTES_MAX
    pipeline_max: int = 0
    waiting_max: int = 0
    lookups_max: int = 0
    page_max: int = 0
    idle_ms: int = 0
    """A connection without any request for so long is closed; 0: never."""
    timeout_ms_max: int = 0
    """What a longer `timeout_ms` counts as; 0, as everything below: nothing was said of it."""
    assign_max: int = 0


@dataclass(frozen=True, slots=True)
class HelloAnswer:
    """Describes the service; a fact that it does not know yet is `None`."""

    version: int
    server: str
    cluster_id: str | None
    topic_id: Uuid | None
    partition_count: int | None
    role: str
    mode: str
    limits: ServiceLimits


def hello_value(hello: ClientHello) -> dict[str, object]:
    value: dict[str, object] = {"versions": list(hello.versions), "client": hello.client}
    for name in ("token", "cluster_id", "broker_id", "instance", "bootstrap"):
        said = getattr(hello, name)
        if said is not None:
            value[name] = said
    return value


def read_hello(value: object) -> ClientHello:
    said = mapping(value, "hello")
    return ClientHello(
        _versions(said.get("versions")),
        text(said.get("client"), "the client of hello", CLIENT_CHARS_MAX),
        _text(said, "token", TOKEN_CHARS_MAX),
        _text(said, "cluster_id", CLUSTER_ID_CHARS_MAX),
        _uint31(said, "broker_id"),
        _uuid(said, "instance"),
        _text(said, "bootstrap", BOOTSTRAP_CHARS_MAX),
    )


def agree(versions: Collection[int]) -> int:
    """Return the newest version that both sides speak; `UnsupportedVersion` where there is none."""
    common = set(versions) & set(VERSIONS)
    if not common:
        theirs = ", ".join(map(str, versions))
        ours = ", ".join(map(str, VERSIONS))
        msg = f"the client speaks the versions {theirs} of the protocol, the service {ours}"
        raise UnsupportedVersion(msg)
    return max(common)


def hello_answer_value(answer: HelloAnswer) -> dict[str, object]:
    """Return *answer* as a value; limits without a value are left out."""
    value = asdict(answer)
    for name in _LIMITS_ADDED:
        if not value["limits"][name]:
            del value["limits"][name]
    return value


def read_hello_answer(value: object) -> HelloAnswer:
    said = mapping(value, "the answer to hello")
    limits = mapping(said.get("limits"), "the limits of a service")
    version = uint31(said.get("version"), "the version of a service")
    return HelloAnswer(
        version,
        text(said.get("server"), "the server of a service", CLIENT_CHARS_MAX),
        _text(said, "cluster_id", CLUSTER_ID_CHARS_MAX),
        _uuid(said, "topic_id"),
        _uint31(said, "partition_count"),
        _one_of(said, "role", ROLES),
        _one_of(said, "mode", MODES),
        ServiceLimits(
            **{name: uint31(limits.get(name), name) for name in _LIMITS},
            **{name: uint31(limits.get(name, 0), name) for name in _LIMITS_ADDED},
        ),
    )


_LIMITS_ADDED: Final = ("timeout_ms_max", "assign_max")
"""Limits that a server of an earlier time says nothing of."""
_LIMITS: Final = tuple(one.name for one in fields(ServiceLimits) if one.name not in _LIMITS_ADDED)


def _versions(value: object) -> tuple[int, ...]:
    versions = array(value, "the versions of hello")
    if not 1 <= len(versions) <= VERSIONS_MAX:
        refuse("the versions of hello", f"1 to {VERSIONS_MAX} numbers", value)
    return tuple(uint31(one, "a version of hello") for one in versions)


def _text(said: Mapping[object, object], key: str, chars_max: int) -> str | None:
    value = said.get(key)
    return None if value is None else text(value, key, chars_max)


def _uint31(said: Mapping[object, object], key: str) -> int | None:
    value = said.get(key)
    return None if value is None else uint31(value, key)


def _uuid(said: Mapping[object, object], key: str) -> Uuid | None:
    value = said.get(key)
    return None if value is None else uuid(value, key)


def _one_of(said: Mapping[object, object], key: str, known: tuple[str, ...]) -> str:
    value = said.get(key)
    if type(value) is not str or value not in known:
        refuse(key, f"one of {', '.join(known)}", value)
    return value
