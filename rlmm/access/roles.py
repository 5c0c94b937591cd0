"""
Roles and grants: which client may call what. Pure.

Invariant: rights are granted to names only. A client without a name here has no rights.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal

from rlmm.errors import ConfigError, NotPermitted

if TYPE_CHECKING:
    from collections.abc import Mapping

ANYBODY: Final = "any"
_NAME: Final = re.compile(r"[!-~]{1,256}", re.ASCII)
NAME_KINDS: Final = ("URI:", "DNS:", "CN:")
"""What may stand before the name of a certificate: the only kind of name that it then fits."""
_BROKER_ID_MAX: Final = 2**31 - 1


class Role(StrEnum):
    """Roles in rising order: each includes the rights of the one before."""

    READER = "reader"
    BROKER = "broker"
    ADMIN = "admin"

    def may(self, least: str) -> bool:
        """Return whether this role includes *least*, or equals it; `any` is always true."""
        return least == ANYBODY or _RANKS[self] >= _RANKS[Role(least)]


_RANKS: Final = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class Peer:
    transport: Literal["unix", "tcp"]
    uid: int | None = None
    client_names: tuple[str, ...] = ()
    """Of a certificate that was verified, each behind its kind, the most telling one first."""
    is_private: bool = True
    """Whether the transport is encrypted, or within this machine."""
    address: str = ""

    @property
    def where(self) -> str:
        if self.address:
            return self.address
        return "a process of this machine" if self.uid is None else f"user {self.uid}"


@dataclass(frozen=True, slots=True)
class Grant:
    name: str
    role: Role
    broker_id: int | None = None
    """The broker that it speaks for, and for no other; `None`: for any."""


@dataclass(frozen=True, slots=True)
class Client:
    name: str
    role: Role
    broker_id: int | None = None
    """The broker that it speaks for, and for no other; `None`: for any."""
    is_limited: bool = True
    token_digest: bytes | None = field(default=None, repr=False)

    def require_role(self, least: str, what: str) -> None:
        """Raises `NotPermitted` if *what* requires a higher role."""
        if not self.role.may(least):
            msg = f"{what} takes the role {least}, this one is {self.role}"
            raise NotPermitted(msg)

    def require_broker(self, broker_id: int | None) -> None:
        """Raises `NotPermitted` if the client may not act for this broker, or for no broker."""
        if broker_id is not None:
            self.require_role(Role.BROKER, f"to speak for broker {broker_id}")
        if self.broker_id is not None and broker_id != self.broker_id:
            asked = "none" if broker_id is None else str(broker_id)
            msg = f"{self.name} speaks for broker {self.broker_id} only, and named {asked}"
            raise NotPermitted(msg)

    def require_author(self, broker_id: int) -> None:
        """Raises `NotPermitted` if the client may not write events of this broker."""
        if self.broker_id is not None and broker_id != self.broker_id:
            msg = f"{self.name} writes for broker {self.broker_id} only, not for {broker_id}"
            raise NotPermitted(msg)


def read_grant(name: str, text: str, where: str) -> Grant:
    """
    Parse `ROLE` or `broker:BROKER_ID` as the grant of *name*.

    Raises `ConfigError`, which begins with *where* and hides the text: it may be a token.
    """
    if not _NAME.fullmatch(name):
        msg = f"{where} must have a name of at most 256 visible ASCII characters"
        raise ConfigError(msg)
    word, colon, digits = text.partition(":")
    try:
        role = Role(word)
    except ValueError:
        msg = f"{where} must have a role of {', '.join(Role)}, or broker:ID"
        raise ConfigError(msg) from None
    if not colon:
        return Grant(name, role)
    is_id = digits.isascii() and digits.isdigit() and len(digits) <= 10
    if role is not Role.BROKER or not is_id or int(digits) > _BROKER_ID_MAX:
        msg = f"{where} must have a broker id from 0 to {_BROKER_ID_MAX}, and only as broker:ID"
        raise ConfigError(msg)
    return Grant(name, role, int(digits))


def grant_of(name: str, grants: Mapping[str, Grant]) -> Grant | None:
    """Return the grant of a certificate's name with its kind; one without a kind fits every one."""
    found = grants.get(name)
    if found is not None or not name.startswith(NAME_KINDS):
        return found
    bare = name.partition(":")[2]
    # A common name may begin like a kind: it must not pass for another one.
    return None if bare.startswith(NAME_KINDS) else grants.get(bare)


def read_grants(texts: tuple[str, ...]) -> dict[str, Grant]:
    """
    Parse `NAME=ROLE` or `NAME=broker:BROKER_ID` into a map by name; raises `ConfigError`.

    A name may begin with one of `NAME_KINDS`.
    """
    found: dict[str, Grant] = {}
    for text in texts:
        name, _, granted = text.rpartition("=")
        grant = read_grant(name.strip(), granted.strip(), "access.client_names")
        if found.setdefault(grant.name, grant) != grant:
            msg = f"access.client_names must name each client once, got {grant.name} twice"
            raise ConfigError(msg)
    return found
