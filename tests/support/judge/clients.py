"""The clients of a run: they ask and write, and say what each outcome of a call means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_adapter.address import UnixAddress
from broker_adapter.client import RemoteLogMetadataClient
from broker_adapter.settings import ClientSettings
from rlmm.base.backoff import Pauses
from rlmm.errors import (
    AppendRefused,
    AppendUncertain,
    EventRejected,
    LogDamaged,
    LogUnavailable,
    NotReady,
    OverBudget,
    RlmmError,
    SidecarUnavailable,
    TooBusy,
    UnknownPartition,
    Unresolved,
)
from rlmm.metadata.events import PartitionDelete
from tests.support.judge.partition import (
    AddSegment,
    Answer,
    FindSegment,
    HighestOffset,
    ListSegments,
    ReadDelete,
    ReadSegment,
    RemoteLogSize,
    Write,
)

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path
    from random import Random

    from tests.support.judge.lives import PartitionLife
    from tests.support.judge.partition import Call

NOTHING_HAPPENED: Final = (
    *(SidecarUnavailable, NotReady, TooBusy, LogUnavailable, OverBudget, AppendRefused),
)
"""A question without an answer, or an event that was surely not stored."""
OUTCOME_UNKNOWN: Final = (AppendUncertain, Unresolved)
EPOCH: Final = 0
EARLY_US: Final = 10_000_000
"""An observer reads batches that its owner has not synced: the owner's answers may be older."""
RECONNECT: Final = Pauses(0.01, 0.1)


class JudgedClient:
    """One connection; *is_repeating* settles lost answers itself, as brokers and jobs do."""

    def __init__(
        self,
        socket: Path,
        random: Random,
        counts: Counter[str],
        *,
        timeout_s: float,
        is_repeating: bool = False,
        late_us: int | None = None,
    ) -> None:
        """*late_us*: ask an observer, whose answers may be so old unless they are linearizable."""
        settings = ClientSettings(
            timeout_s=timeout_s, reconnect=RECONNECT, is_repeating=is_repeating
        )
        self.connection = RemoteLogMetadataClient(UnixAddress(socket), settings=settings)
        self._is_repeating = is_repeating
        self._late_us = late_us
        # An observer refuses at first where its owner has cut the log.
        self._nothing = NOTHING_HAPPENED if late_us is None else (*NOTHING_HAPPENED, LogDamaged)
        self._random = random
        self._counts = counts

    async def work(self, life: PartitionLife) -> None:
        """Do one operation on the user partition of *life*, and record it in its history."""
        ways: list[dict[str, Any]] = [{}, {"linearizable": True}]
        if self._late_us is None:
            ways.append({"at_least": dict(life.token)})
        options = self._random.choice(ways)
        call = life.draw(self._random) if self._late_us is None else life.question(self._random)
        late_us = 0 if options else self._late_us or 0
        operation, kills = life.begin(call, late_us), self._counts["kills"]
        try:
            if isinstance(call, Write):
                answer: object = await self._write(life, call)
            else:
                answer = await self._ask(life, call, options)
        except self._nothing as error:
            life.forget(operation)
            self._counts[f"nothing happened: {error.code}"] += 1
        except OUTCOME_UNKNOWN as error:
            self._counts["outcome unknown"] += 1
            self._counts[f"outcome unknown: {error.code}"] += 1
        except RlmmError as error:
            life.end(operation, f"{error.code}: {error}")  # no order explains it
        else:
            life.end(operation, answer, early_us=0 if self._late_us is None else EARLY_US)
            if self._is_repeating and self._counts["kills"] > kills and isinstance(call, Write):
                life.repeated(operation)
            self._counts["answered"] += 1
            self._counts["answered by the observer"] += self._late_us is not None
            self._counts[f"{type(call).__name__}: {_kind(answer)}"] += 1
        finally:
            life.pending.remove(operation)

    async def _write(self, life: PartitionLife, call: Write) -> Answer:
        event, token = life.event_of(call), life.token
        client = self.connection
        try:
            if isinstance(call, AddSegment):
                written = await client.add_segment(life.segments[call.number])
            elif isinstance(event, PartitionDelete):
                written = await client.put_partition_delete(event)
            else:
                written = await client.update_segment(event)  # type: ignore[arg-type] # by the call
        except EventRejected:
            return Answer.REJECTED
        place = written.metadata_partition
        token[place] = max(written.offset, token.get(place, -1))
        if written.verdict == "duplicate" and self._is_repeating:
            return Answer.SETTLED
        return Answer(written.verdict)

    async def _ask(self, life: PartitionLife, call: Call, options: dict[str, Any]) -> object:
        try:
            return await self._answer(life, call, options)
        except UnknownPartition:
            return Answer.UNKNOWN

    async def _answer(self, life: PartitionLife, call: Call, options: dict[str, Any]) -> object:
        client, partition = self.connection, life.partition
        match call:
            case ListSegments():
                listed = client.list_segments(partition, **options)
                return tuple([life.shown(segment) async for segment in listed])
            case FindSegment(offset):
                found = await client.segment_for(partition, EPOCH, offset, **options)
                return life.shown(found)
            case ReadSegment(number):
                return life.shown(await client.segment(life.segments[number].id, **options))
            case HighestOffset():
                return await client.highest_offset(partition, EPOCH, **options)
            case RemoteLogSize():
                return await client.remote_log_size(partition, **options)
            case ReadDelete():
                delete = await client.partition_delete(partition, **options)
                return None if delete is None else delete.state
        raise AssertionError(call)


def _kind(answer: object) -> str:
    if isinstance(answer, Answer):
        return answer.name
    return "nothing" if answer is None or answer == () else "found"
