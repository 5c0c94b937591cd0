"""
Limits of one client, by name: concurrent connections and requests per second. Pure.

The caller passes the time in. A limit of one client never delays another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rlmm.errors import TooBusy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlmm.access.roles import Client


REQUEST_BYTES: Final = 4 * 1024
"""A request counts as one, and as one more for each so many of its bytes."""


class TokenBucket:
    __slots__ = ("_at_s", "_left", "_per_s")

    def __init__(self, per_s: int, now_s: float) -> None:
        self._per_s = per_s
        self._left = float(per_s)
        self._at_s = now_s

    def take(self, now_s: float, count: int = 1) -> bool:
        """Take *count*, or all of a second where that is more; `False`: so many are not left."""
        count = min(count, self._per_s)
        passed_s = max(0.0, now_s - self._at_s)
        self._at_s = max(now_s, self._at_s)
        self._left = min(self._per_s, self._left + passed_s * self._per_s)
        if self._left < count:
            return False
        self._left -= count
        return True


@dataclass(frozen=True, slots=True)
class ClientFigures:
    connections: int
    connections_refused: int
    requests_refused: int


class _Taken:
    __slots__ = ("bucket", "connections", "connections_refused", "requests_refused")

    def __init__(self) -> None:
        self.connections = self.connections_refused = self.requests_refused = 0
        self.bucket: TokenBucket | None = None


class ClientLimits:
    def __init__(
        self, connections_max: int, requests_per_second_max: int | None, now_s: Callable[[], float]
    ) -> None:
        self._connections_max = connections_max
        self._per_s = requests_per_second_max
        self._now_s = now_s
        self._taken: dict[str, _Taken] = {}

    def enter(self, client: Client) -> None:
        """Count one more connection of *client*; raises `TooBusy` above the limit."""
        taken = self._of(client)
        if client.is_limited and taken.connections >= self._connections_max:
            taken.connections_refused += 1
            msg = f"{client.name} has {taken.connections} connections, as many as it may"
            raise TooBusy(msg)
        taken.connections += 1

    def leave(self, client: Client) -> None:
        self._of(client).connections -= 1

    def meter(self, client: Client) -> Callable[[int], None] | None:
        """
        Return the check for each request of *client*; `None`: no limit.

        The check takes the bytes of the request, and raises `TooBusy`.
        """
        if self._per_s is None or not client.is_limited:
            return None
        taken, per_s, now_s = self._of(client), self._per_s, self._now_s
        if taken.bucket is None:
            taken.bucket = TokenBucket(per_s, now_s())
        bucket = taken.bucket

        def spend(request_bytes: int) -> None:
            if not bucket.take(now_s(), 1 + request_bytes // REQUEST_BYTES):
                taken.requests_refused += 1
                msg = (
                    f"{client.name} asks more often than {per_s} times a second, with each "
                    f"{REQUEST_BYTES} bytes of a request counted as one more"
                )
                raise TooBusy(msg)

        return spend

    def keep(self, names: set[str]) -> None:
        """Forget clients that have neither a grant nor a connection any more."""
        gone = [
            name for name, taken in self._taken.items()
            if name not in names and not taken.connections
        ]  # fmt: skip
        for name in gone:
            del self._taken[name]

    def figures(self) -> Mapping[str, ClientFigures]:
        return {
            name: ClientFigures(
                taken.connections, taken.connections_refused, taken.requests_refused
            )
            for name, taken in self._taken.items()
        }

    def _of(self, client: Client) -> _Taken:
        return self._taken.setdefault(client.name, _Taken())
