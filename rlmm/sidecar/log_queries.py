"""
Log queries: bounds and record batches of the log itself, never of the state.

Only a few reads run at a time, for one connection and for all, as they cost brokers, disks and
memory; a wait for new records does not count. Invariant: only the named topic is read.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from rlmm.errors import LogError, LogRecreated, NotAssigned, NotReady, TooBusy
from rlmm.log.replay_progress import NotReadyReason
from rlmm.records.batch import Batch, walk
from rlmm.sidecar.waiting_requests import while_served
from rlmm.wire.operator_queries import LogEnds, LogPiece, log_ends_value, log_piece_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlmm.engine.engine import Engine
    from rlmm.log.protocol import LogBounds
    from rlmm.metadata.ids import Uuid
    from rlmm.records.record_set import RecordSet
    from rlmm.sidecar.session import ClientSession

OF_CONNECTION_MAX: Final = 4
ALL_MAX: Final = 16
"""And for all: as many megabytes, few for brokers and disks."""
LOG_S: Final = 10.0
LOOK_S: Final = 5.0
"""How long a read waits for a state to move before it asks the log itself."""
_PAUSE_S: Final = 1.0
"""The same where there is no state to wait for."""


async def log_bounds(session: ClientSession, places: Sequence[int]) -> object:
    engine = session.engine()
    topic_id = _topic_id(engine)
    with _under_way(session):
        found = await engine.past.bounds(places, timeout_s=LOG_S)
    _require_topic(engine, topic_id)
    return log_ends_value(topic_id, [_ends(found[place]) for place in places])


async def read_log(
    session: ClientSession, topic_id: Uuid, place: int, position: int, piece: tuple[int, int],
    timeout_s: float,
) -> object:  # fmt: skip
    """
    Return record batches of *place* from *position* on; nil if none come within *timeout_s*.

    *piece*: bytes of them to skip, and bytes to return.
    """
    engine = session.engine()
    _require_topic(engine, topic_id)
    with while_served(session, engine):
        if not await _is_there(session, place, position, timeout_s):
            return None
    skip, size = piece
    with _under_way(session):
        found = await engine.past.read(place, position, timeout_s=LOG_S, bytes_max=size)
    _require_topic(engine, topic_id)
    if found is None:
        return None
    data, next_offset = _whole(found, size)
    part = data[skip : skip + size]
    return log_piece_value(LogPiece(part, next_offset, max(0, len(data) - skip - len(part))))


async def _is_there(session: ClientSession, place: int, position: int, timeout_s: float) -> bool:
    engine, loop = session.engine(), asyncio.get_running_loop()
    deadline_s = loop.time() + timeout_s
    while True:
        applied = _applied(session, place)
        if applied is not None and position < applied:
            return True
        left_s = deadline_s - loop.time()
        if position == applied and left_s > 0:
            with suppress(NotReady, NotAssigned):
                await engine.wait_reached({place: position}, timeout_s=min(left_s, LOOK_S))
                return True
        # What is not applied here may be there all the same.
        with _under_way(session):
            ends = (await engine.past.bounds([place], timeout_s=LOG_S))[place]
        if isinstance(ends, LogError) or position != ends.high_watermark:
            return True
        left_s = deadline_s - loop.time()
        if left_s <= 0:
            return False
        if position != applied:
            await asyncio.sleep(min(left_s, _PAUSE_S))


def _ends(found: LogBounds | LogError) -> LogEnds | LogError:
    return (
        found
        if isinstance(found, LogError)
        else LogEnds(found.log_start_offset, found.high_watermark)
    )


def _applied(session: ClientSession, place: int) -> int | None:
    try:
        return session.reads().place(place).position
    except (NotAssigned, NotReady):
        return None


def _whole(found: RecordSet, size: int) -> tuple[bytes, int]:
    """
    Return the whole batches in *size* bytes, one at least, and the next offset.

    It is the same at every call, even where a log returns more.
    """
    assert found.next_offset is not None, found.partition
    stop, next_offset = 0, found.next_offset
    if len(found.data) > size:
        for batch in walk(found.data, verify_crc=False):
            if not isinstance(batch, Batch) or (stop and batch.stop > size):
                break
            stop, next_offset = batch.stop, batch.next_offset
    return (found.data[:stop], next_offset) if stop else (found.data, found.next_offset)


@contextmanager
def _under_way(session: ClientSession) -> Iterator[None]:
    """Count one call of the log; raises `TooBusy` for one too many."""
    figures = session.figures
    if session.log_reads >= OF_CONNECTION_MAX:
        msg = f"{session.log_reads} reads of the log are under way for this connection, no more may"
        raise TooBusy(msg)
    if figures.log_reads >= ALL_MAX:
        msg = f"{figures.log_reads} reads of the log are under way for all, no more may: ask later"
        raise TooBusy(msg)
    session.log_reads += 1
    figures.log_reads += 1
    try:
        yield
    finally:
        session.log_reads -= 1
        figures.log_reads -= 1


def _topic_id(engine: Engine) -> Uuid:
    if engine.identity is None:
        raise NotReady("the log has not been reached", reason=NotReadyReason.CONNECTING)
    return engine.identity.topic_id


def _require_topic(engine: Engine, topic_id: Uuid) -> None:
    """Offsets of one topic mean nothing in another."""
    found = _topic_id(engine)
    if found != topic_id:
        raise LogRecreated(f"asked for is the metadata topic {topic_id}, followed is {found} now")
