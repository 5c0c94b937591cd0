"""Settings of a client: plain values, each with the reason of its default."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isfinite
from typing import Final

from rlmm.base.backoff import Pauses
from rlmm.errors import InvalidArgument

RECONNECT: Final = Pauses(0.05, 5.0)
TIMEOUT_S_MAX: Final = 2_000_000.0
"""Longest deadline of a call: what still is a number of 31 bits in milliseconds."""


@dataclass(frozen=True, slots=True)
class ClientSettings:
    timeout_s: float = 30.0
    """Deadline of a call that is given none, every repeat included: the request time-out of Kafka's
    clients. A broker's reader should give less, since a fetch is answered within 500 ms."""
    ready_timeout_s: float = 0.3
    """Deadline of `is_ready`, which a broker asks several times a second for each partition and
    which must not stall: a partition whose state is not known by then is not ready."""
    connect_timeout_s: float = 5.0
    """Longest time that a connection may take until `hello` is answered."""
    reconnect: Pauses = RECONNECT
    """Pauses between attempts to connect: a service on the same machine is back within a moment,
    and one that is gone for long is not to be hammered."""
    idle_s: float = 60.0
    """After so long without an answer `ping` is sent, or earlier where the service closes idle
    connections sooner: a peer that vanished without a word is found out."""
    page_size: int = 1_000
    """Segments that one page of a listing is asked for with: what services allow at most."""
    superseded_max: int = 3
    """How often in a row the service may say that another start of this broker has taken over;
    then the client gives up. Once may be what a service says that is just being replaced, and who
    tries for ever hides that two brokers have one id."""
    is_repeating: bool = True
    """Whether anything is tried again. Off, each call is one attempt: for tests that want to see
    the first answer."""

    def __post_init__(self) -> None:
        for name in ("timeout_s", "ready_timeout_s", "connect_timeout_s", "idle_s"):
            require_timeout(getattr(self, name), name)
        for name in ("page_size", "superseded_max"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                msg = f"{name} must be a number above 0, got {value!r}"
                raise InvalidArgument(msg)
        for one in fields(Pauses):
            require_timeout(getattr(self.reconnect, one.name), f"reconnect.{one.name}")


def require_timeout(value: object, name: str = "timeout_s") -> float:
    """Return *value*, or raise `InvalidArgument` where no wait can last so long."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not isfinite(value)
        or not 0 < value <= TIMEOUT_S_MAX
    ):
        msg = f"{name} must be above 0 and at most {TIMEOUT_S_MAX:.0f} seconds, got {value!r}"
        raise InvalidArgument(msg)
    return value
