"""Source of a running service, over the frame protocol."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Self

from broker_adapter.address import TcpAddress, UnixAddress, tls_context, token_in
from broker_adapter.calls import status
from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.base.version import __version__
from rlmm.errors import ConfigError, InvalidArgument, NotReady, RlmmError
from rlmm.inspection.source_status import SourceStatus, StateSourceKind
from rlmm.state_sources.sidecar_link import SidecarLink
from rlmm.state_sources.sidecar_log import SidecarLog
from rlmm.state_sources.sidecar_moment import SidecarMoment
from rlmm.state_sources.sidecar_status import standing_of, with_lag
from rlmm.wire.hello import VERSIONS, ClientHello, hello_value, read_hello

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from broker_adapter.address import Address
    from rlmm.inspection.replay import Progress
    from rlmm.inspection.source_status import MetadataPartitionStatus
    from rlmm.records.record_set import RecordSet
    from rlmm.state_sources.brokers import Brokers
    from rlmm.state_sources.settings import SourceSettings

CLIENT: Final = f"rlmm/{__version__}"
_LOOK_S: Final = 0.5
_RECORD_S: Final = 2.0


class ServiceStateSource:
    kind = StateSourceKind.SIDECAR

    def __init__(
        self,
        link: SidecarLink,
        *,
        cluster: Brokers | None = None,
        now_ms: Callable[[], int] = SYSTEM_CLOCK.now_ms,
    ) -> None:
        """Takes ownership of its arguments, and closes them."""
        self._link = link
        self._now_ms = now_ms
        self.cluster = cluster
        self.log = SidecarLog(link)

    @classmethod
    async def open(cls, settings: SourceSettings, *, cluster: Brokers | None = None) -> Self:
        """Connect to the service; on failure *cluster* still belongs to the caller."""
        hello = ClientHello(VERSIONS, CLIENT, token_of(settings), settings.cluster_id or None)
        read_hello(hello_value(hello))
        link = await SidecarLink.open(address_of(settings), hello, settings.timeout_s)
        return cls(link, cluster=cluster)

    @property
    def where(self) -> str:
        return self._link.where

    async def close(self) -> None:
        await self._link.close()
        if self.cluster is not None:
            await self.cluster.close()

    # -------------------------------------------------------------------------- how it stands

    async def standing(self) -> SourceStatus:
        """See `StateSource`. The age of a lagging partition requires the admin role."""
        found = await self._standing()
        if not self.log.may_read:
            return found
        lags = {
            one.metadata_partition: await self._lag_s(one)
            for one in found.places
            if one.lag_records
        }
        return with_lag(found, lags)

    async def _standing(self) -> SourceStatus:
        """Return the status without the age of the last records."""
        try:
            said = await self._link.ask(status())
        except NotReady as error:
            return SourceStatus(self.kind, self.where, None, (), (str(error),))
        return standing_of(said, self.where, self._link.server.mode)

    async def _lag_s(self, place: MetadataPartitionStatus) -> float | None:
        """Return the age of the last applied record; `None` if the service does not tell."""
        position, start = place.position, place.log_start
        if position is None or start is None or position <= start:
            return None
        try:
            found = await self.log.read(
                place.metadata_partition, position - 1, timeout_s=_RECORD_S, bytes_max=1
            )
        except RlmmError:
            return None
        stamp_ms = None if found is None else _timestamp_ms(found, position - 1)
        return None if stamp_ms is None else max(0, self._now_ms() - stamp_ms) / 1_000

    # ------------------------------------------------------------------------------ the state

    async def now(
        self,
        places: Collection[int] | None = None,
        *,
        wait_s: float = 0.0,
        progress: Progress | None = None,
    ) -> SidecarMoment:
        """See `StateSource`. Unassigned metadata partitions are not waited for."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + wait_s
        while True:
            found = await self._standing()
            asked = _asked(found, places)
            behind = [one for one in asked if not one.is_caught_up]
            if progress is not None:
                for one in asked:
                    if one.position is not None and one.target is not None:
                        progress(one.metadata_partition, one.position, one.target)
            if found.identity is not None and not behind:
                positions = {one.metadata_partition: one.position or 0 for one in asked}
                return SidecarMoment(self._link, found.identity, positions)
            left_s = deadline_s - loop.time()
            if left_s <= 0 or not all(one.is_assigned for one in behind):
                raise self._not_ready(found, behind)
            await asyncio.sleep(min(_LOOK_S, left_s))

    def _not_ready(self, found: SourceStatus, behind: list[MetadataPartitionStatus]) -> NotReady:
        where = f"the service at {self.where}"
        if not behind:
            return NotReady(f"{where}: {'; '.join(found.notes)}", reason="connecting")
        # Waiting brings what is behind, and never what the service was not given.
        first = next((one for one in behind if not one.is_assigned), behind[0])
        others = f", and {len(behind) - 1} more" if len(behind) > 1 else ""
        how = first.detail or "it is being read"
        why = "" if first.why == first.state else f" ({first.why})"
        msg = (
            f"{where} is not caught up: metadata partition {first.metadata_partition} is "
            f"{first.state}{why}: {how}{others}"
        )
        return NotReady(
            msg,
            reason=first.why or first.state,
            metadata_partition=first.metadata_partition,
            position=first.position,
            target=first.target,
        )


def _asked(found: SourceStatus, places: Collection[int] | None) -> list[MetadataPartitionStatus]:
    """Return the status of the requested partitions; none while the topic is unknown."""
    if places is None or found.identity is None:
        return list(found.places)
    count = found.identity.partition_count
    for place in places:
        if not 0 <= place < count:
            msg = f"there is no metadata partition {place}: there are {count}"
            raise InvalidArgument(msg)
    return [one for one in found.places if one.metadata_partition in set(places)]


def _timestamp_ms(found: RecordSet, offset: int) -> int | None:
    """Return the timestamp of the record at *offset*, or of its batch if it was compacted away."""
    from rlmm.records.batch import Batch, walk  # noqa: PLC0415  # for a partition that lags
    from rlmm.records.damage import DamagedRecords  # noqa: PLC0415

    for batch in walk(found.data, verify_crc=False):
        if not isinstance(batch, Batch) or batch.next_offset <= offset:
            continue
        for record in batch.records():
            if not isinstance(record, DamagedRecords) and record.offset == offset:
                return record.timestamp_ms
        return batch.max_timestamp_ms if batch.max_timestamp_ms >= 0 else None
    return None


_UNIX: Final = "unix:"
_PORT_MAX: Final = 2**16 - 1


def address_of(settings: SourceSettings) -> Address:
    """Return the address of the service. Raises `ConfigError`, naming the file or the flag."""
    text = settings.sidecar
    wants_tls = settings.is_tls or bool(settings.ca_file or settings.certificate_file)
    if text.startswith(_UNIX) or "/" in text:
        if wants_tls:
            msg = f"TLS is for HOST:PORT, and --sidecar is a socket of this machine: {text}"
            raise ConfigError(msg)
        return UnixAddress(text.removeprefix(_UNIX))
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    is_number = port.isascii() and port.isdigit() and len(port) <= 5
    if not (host and colon and is_number and 0 < int(port) <= _PORT_MAX):
        msg = f"--sidecar is HOST:PORT, or the path of a socket with a slash in it, got {text!r}"
        raise ConfigError(msg)
    files = settings.ca_file, settings.certificate_file, settings.key_file
    return TcpAddress(
        host,
        int(port),
        tls_context(*files) if wants_tls else None,
        plaintext_token=settings.is_plaintext_token,
    )


def token_of(settings: SourceSettings) -> str | None:
    """Read the token from the named file; messages never show its content."""
    return token_in(settings.token_file)
