"""Arguments of another kind than a call takes: refused by name, before anything is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.client import RemoteLogMetadataClient
from broker_adapter.stand_in import StandInService
from rlmm.engine.engine import EngineSettings
from rlmm.errors import InvalidArgument
from rlmm.metadata.segment import PartitionDeleteState
from tests.support.builders import finished, partition_delete, started, tp
from tests.support.engines import ROOM, LibraryTopic

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Call = Callable[[Any], Coroutine[Any, Any, object]]

TP = tp()
MARKED = partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED)
SLIPS: dict[str, Call] = {
    "an update is no start": lambda it: it.add_segment(finished("a")),
    "a deletion of the partition is no update": lambda it: it.update_segment(MARKED),
    "a start is no deletion": lambda it: it.put_partition_delete(started("a")),
}
OTHERS: dict[str, Call] = {
    "no event": lambda it: it.store("started"),
    "a name": lambda it: it.segment_for("orders-0", 0, 0),
    "a name to be ready": lambda it: it.wait_ready("orders-0"),
    "a uuid": lambda it: it.segment(TP.topic_id),
    "a list": lambda it: it.reconcile([TP]),
    "a pair": lambda it: it.segments_for([(TP, 0)]),
    "a look-up of a name": lambda it: it.segments_for([("orders-0", 0, 0)]),
    "a list of offsets": lambda it: it.segments(TP, at_least=[1]),
    "a text for a partition": lambda it: it.segments(TP, at_least={"0": 1}),
    "true for a partition": lambda it: it.segments(TP, at_least={True: 1}),
}


@pytest.mark.parametrize("call", [*SLIPS.values(), *OTHERS.values()], ids=[*SLIPS, *OTHERS])
async def test_call_when_an_argument_is_of_another_kind_then_refused(call: Call) -> None:
    """The refusal is `InvalidArgument`, and nothing is stored."""
    topic = LibraryTopic(EngineSettings(memory=ROOM))
    async with topic.opened() as metadata:
        await metadata.wait_all_ready(timeout_s=30)
        with pytest.raises(InvalidArgument):
            await call(metadata)
    assert topic.ends == [0, 0, 0]


@pytest.mark.parametrize("call", SLIPS.values(), ids=SLIPS)
async def test_event_when_a_client_is_given_another_kind_then_refused(call: Call) -> None:
    """A client refuses a slip as the library does, so that no partition is marked by it."""
    with pytest.raises(InvalidArgument, match="the event must be a"):
        await call(StandInService().client())


async def test_client_when_its_address_is_a_text_then_refused() -> None:
    """A path is no address; the refusal names both kinds of address."""
    with pytest.raises(InvalidArgument, match="UnixAddress or a TcpAddress"):
        RemoteLogMetadataClient("/run/rlmm.sock")  # type: ignore[arg-type]
