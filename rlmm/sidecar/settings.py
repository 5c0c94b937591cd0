"""Settings of the frame server. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rlmm.base.whole_numbers import require_whole_numbers
from rlmm.errors import ConfigError

_PORT_MAX = 2**16 - 1
_MODE = re.compile(r"0?[0-7]{3}", re.ASCII)
NO_SOCKET = "none"
"""A path that says that no Unix socket is opened."""
SOCKET_NAME = "rlmm.sock"
"""Of the Unix socket in the data folder, where no path is said."""
SOCKET_PATH_BYTES_MAX = 100
"""Longest path that every system takes, with what stands behind it while the socket is made."""
_BOUNDS = {
    "frame_bytes_max": (64 * 1024, 64 * 1024 * 1024),
    "lookups_max": (1, 10_000),
    "page_max": (1, 1_000),
    "assign_max": (1, 10_000),
}
"""What the engine itself allows; of an assignment, what other clients can be made to wait for."""


@dataclass(frozen=True, slots=True)
class AssignmentLimits:
    """Limits of one cluster's assignments: those settings of the frame server with these names."""

    brokers_max: int
    broker_partitions_max: int = 20_000
    assigned_bytes_max: int = 128 * 1024 * 1024
    broker_gone_s: float = 3_600.0


@dataclass(frozen=True, slots=True)
class SidecarSettings:
    unix_path: str | None = None
    """Path of the Unix socket; `none` opens none. Not set: `rlmm.sock` in `data_dir`, so that a
    broker beside the service needs no configuration of either."""
    unix_mode: str = "0600"
    """Mode of the socket's file, in octal, which is its access control: a user with the right to
    write to it is an administrator. The default is the user of the service alone; `0660` adds a
    group."""
    listen: str | None = None
    """`host:port` where TCP connections are taken, too. Not set: nowhere, because what is reachable
    over a network is to be decided."""
    connections_max: int = 10_000
    """Connections at a time. For one more, the TCP connection goes that has waited longest to say
    hello; where all have said hello, the one more is refused at once. Of these places 64 are for
    the Unix socket alone. Where the system allows the process fewer files, fewer are taken, which
    is logged at the start."""
    address_greetings_max: int = 256
    """TCP connections of one address that have not said hello; for one more the first of them goes.
    Brokers behind one address say hello within milliseconds, so that hundreds of them may start at
    once. All addresses together have 1,024 such connections at most, and a quarter of
    `sidecar.connections_max`; for one more the first of all goes."""
    frame_bytes_max: int = 4 * 1024 * 1024
    """Largest frame, in both directions: some thousand segments with custom metadata."""
    received_bytes_max: int = 16 * 1024 * 1024
    """Bytes of unanswered frames of all clients after hello: four of the largest. Above, the client
    that has most is cut off, so that no number of clients can use up the memory."""
    greeting_bytes_max: int = 4 * 1024 * 1024
    """The same for all clients before hello, so that strangers never cost a known client its
    connection. A `hello` that comes in one piece, as nearly all do, needs nothing of it."""
    pipeline_max: int = 1_024
    """Requests of one connection that are taken up at a time. Further ones stay where they are, and
    others have their turn first; none is refused for that."""
    waiting_max: int = 256
    """Writes and waiting reads of one connection at a time; one more is refused as too busy."""
    waiting_bytes_max: int = 8 * 1024 * 1024
    """Memory that those of one connection may take, by the sizes of their frames: some 500 writes,
    or 5 waiting requests of 1,000 look-ups each. One more is too busy, unless it is the only
    one."""
    waiting_bytes_total_max: int = 24 * 1024 * 1024
    """The same over all connections: three that wait with all they may, or 1,500 writes. A client
    by name may take half of it."""
    write_buffer_bytes_max: int = 256 * 1024
    """Bytes of answers that a client has not taken; above, nothing more is read from it."""
    unsent_bytes_total_max: int = 16 * 1024 * 1024
    """The same over all connections, beside what the system keeps for their sockets. Above, the
    client that leaves most is cut off; `sidecar.received_bytes_max`, `greeting_bytes_max`,
    `waiting_bytes_total_max` and this one are 60 MiB together."""
    slow_client_ms: int = 30_000
    """How long a client may leave it at that before it is cut off: the time-out of Kafka's clients,
    after which they do not wait for the answer."""
    idle_timeout_ms: int = 600_000
    """A connection without a request for so long is closed, as Kafka's brokers do after ten
    minutes, too; a `ping` now and then keeps it."""
    hello_timeout_ms: int = 10_000
    """Longest time from the connection to `hello`."""
    ready_timeout_ms: int = 30_000
    """How long `wait_ready` waits where the client does not say: what Kafka's own tests allow a
    metadata manager."""
    timeout_ms_max: int = 120_000
    """Longest time that one request may wait: as long as Kafka's own metadata manager waits for its
    consumer (`remote.log.metadata.consume.wait.ms`). A longer `timeout_ms` counts as this one, with
    the ordinary answer at its end: `hello` carries it, and a client that wants more asks again. It
    is not refused, because the first clients knew of no bound."""
    lookups_max: int = 1_000
    """Look-ups in one request: some milliseconds, for which other clients wait."""
    page_max: int = 1_000
    """Segments in one page of a listing, for the same reason."""
    assign_max: int = 4_000
    """Partitions in one `assign` or `stop_partitions`: what Kafka advises as the most of one
    broker, since the first clients know of no bound and say all at once; some ten milliseconds, at
    a broker's start. A broker with more says them in several."""
    brokers_max: int = 1_000
    """Brokers of one cluster of which is remembered what they have; one more is refused as too
    busy. Several times what the largest clusters have. A broker that has nothing and is not
    connected is forgotten."""
    broker_partitions_max: int = 20_000
    """User partitions of which one broker may say that it has them; an `assign` above is refused as
    too busy. Five times what Kafka advises as the most of one broker. A broker's token can so take
    some 15 MB; brokers with more need a higher limit."""
    assigned_bytes_max: int = 128 * 1024 * 1024
    """Memory that the partitions of all brokers of a cluster may take, each some 512 bytes and its
    topic's name, and 64 bytes for each further replica; an `assign` above is refused as too busy.
    Enough for some 230,000 partitions; a service of a larger cluster needs more memory than the
    pod of `deploy/kubernetes` has, too."""
    broker_gone_ms: int = 3_600_000
    """How long the partitions of a broker without a connection are kept: longer than most brokers
    take to start after a crash. A broker that comes back later is answered as soon as it has
    reported its partitions and their metadata has been read."""
    clusters_max: int | None = None
    """Clusters that are learned from brokers, beside the one of the configuration: a broker that
    names an unknown cluster has an engine made for it, once that cluster has answered where the
    broker said. Not set: none, because operators decide which log is followed. With `log.kind =
    kafka` and no servers it must be set."""
    stop_timeout_ms: int = 5_000
    """How long answers under way may take when the service is asked to stop; well below
    `shutdown_timeout_ms`, of which the last snapshots need a part."""

    def __post_init__(self) -> None:
        require_whole_numbers("sidecar.", self, **_BOUNDS)
        if self.ready_timeout_ms > self.timeout_ms_max:
            msg = (
                f"sidecar.ready_timeout_ms must not be above sidecar.timeout_ms_max, "
                f"got {self.ready_timeout_ms} and {self.timeout_ms_max}"
            )
            raise ConfigError(msg)
        if not _MODE.fullmatch(self.unix_mode):
            msg = f"sidecar.unix_mode must be a mode in octal, as 0600, got {self.unix_mode!r}"
            raise ConfigError(msg)
        if self.unix_path is not None and (not self.unix_path.strip() or "\0" in self.unix_path):
            msg = f"sidecar.unix_path must be a path or {NO_SOCKET}, got {self.unix_path!r}"
            raise ConfigError(msg)
        _ = self.address

    @property
    def assignment_limits(self) -> AssignmentLimits:
        return AssignmentLimits(
            self.brokers_max,
            self.broker_partitions_max,
            self.assigned_bytes_max,
            self.broker_gone_ms / 1_000,
        )

    @property
    def mode(self) -> int:
        return int(self.unix_mode, 8)

    @property
    def address(self) -> tuple[str, int] | None:
        if self.listen is None:
            return None
        host, colon, port = self.listen.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            colon = ""
        is_number = port.isascii() and port.isdigit() and len(port) <= 5
        if not (host and colon and is_number and int(port) <= _PORT_MAX):
            msg = f"sidecar.listen must be host:port, got {self.listen!r}"
            raise ConfigError(msg)
        return host, int(port)
