"""The audit log: what clients wrote, took over and were refused, over a real socket."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.access.audit import LOGGER, REFUSALS_MAX, AuditLog
from rlmm.access.roles import Peer
from rlmm.access.settings import UnassignedWrites
from rlmm.errors import NotAssigned, NotPermitted, TooBusy
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.wire.values import delete_value, partition_value, segment_value, update_value
from tests.integration.access.test_roles_by_socket import door, serving
from tests.support.builders import finished, partition_delete, segment_id, started, tp
from tests.support.server.access_files import ADMIN, BOUND, BROKER, READER
from tests.support.server.raw_frames import connected, greeted

if TYPE_CHECKING:
    from rlmm.access.authentication import Authenticator

ORDERS = tp("orders", 7)
KEY = partition_value(ORDERS)
SEGMENT = started(segment_id(1, ORDERS), broker_id=7)
INSTANCES = (b"1" * 16, b"2" * 16)


def entries(keeper: Authenticator, caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Return the fields of the entries so far, and forget them."""
    caplog.clear()
    keeper.audit.flush()
    found = [vars(record) for record in caplog.records if record.name == LOGGER]
    assert all(one["levelno"] == logging.INFO for one in found)
    return found


def shown(entry: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(entry.get(name) for name in names)


async def test_audit_when_a_client_writes_then_an_entry_has_who_where_what_and_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An entry of a write has client, role, address, cluster, partition, segment and verdict."""
    caplog.set_level(logging.INFO)
    keeper = door()
    async with (
        serving(keeper) as served,
        greeted(served.tcp, token=BROKER, broker_id=7) as client,
    ):
        await client.call("assign", [KEY], [], True)
        await client.call("add_segment", KEY, segment_value(SEGMENT))
        update = finished(SEGMENT.id, broker_id=7)
        await client.call("update_segment", *update_value(update))
        await client.call("segment_for", KEY, 0, 5)
        identity = served.engine.identity
    assert identity is not None
    assignment, added, updated = entries(keeper, caplog)
    who = ("broker", "broker", "127.0.0.1", "tcp")
    for entry in (assignment, added, updated):
        assert shown(entry, "client", "role", "address", "transport") == who
        assert entry["cluster_id"] == identity.cluster_id
    assert shown(assignment, "action", "method", "broker_id", "partitions", "user_partitions") == (
        "assignment", "assign", 7, 1, str(ORDERS)
    )  # fmt: skip
    names = ("action", "method", "broker_id", "user_partition", "segment_id", "verdict", "offset")
    said = ("write", "add_segment", 7, str(ORDERS), str(SEGMENT.id.uuid), "applied", 0)
    assert shown(added, *names) == said
    assert updated["state"] == SegmentState.COPY_SEGMENT_FINISHED.name


async def test_audit_when_a_client_is_refused_then_an_entry_has_the_reason_and_no_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Refused credentials, brokers, roles, authors and rates have an entry without the token."""
    caplog.set_level(logging.INFO)
    keeper = door(client_requests_per_second_max=2)
    wrong = "a-wrong-token-0123456789"
    async with serving(keeper) as served:
        async with connected(served.tcp) as client:
            with pytest.raises(NotPermitted):
                await client.hello(token=wrong)
        async with connected(served.tcp) as client:
            with pytest.raises(NotPermitted):
                await client.hello(token=BOUND, broker_id=8)
        async with greeted(served.tcp, token=READER) as client:
            with pytest.raises(NotPermitted):
                await client.call("assign", [KEY], [], True)
            with pytest.raises(NotPermitted):
                await client.call("add_segment", KEY, segment_value(SEGMENT))
            with pytest.raises(TooBusy):
                await client.call("ping")
        async with greeted(served.tcp, token=BOUND, broker_id=7) as client:
            other = started(segment_id(2, ORDERS), broker_id=8)
            with pytest.raises(NotPermitted):
                await client.call("add_segment", KEY, segment_value(other))
    found = entries(keeper, caplog)
    assert [shown(one, "action", "reason", "client", "method") for one in found] == [
        ("credentials", "unknown-token", None, None),
        ("connection", "not-permitted", "broker-7", None),
        ("request", "not-permitted", "reader", "assign"),
        ("write", "not-permitted", "reader", "add_segment"),
        ("request", "too-busy", "reader", None),
        ("write", "not-permitted", "broker-7", "add_segment"),
    ]
    assert {one["verdict"] for one in found} == {"refused"}
    assert {one["address"] for one in found} == {"127.0.0.1"}
    assert [one for one in (wrong, READER, BOUND) if one in repr(found)] == []


async def test_audit_when_a_start_takes_over_then_an_entry_names_the_client(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The assign of another start of a broker is a takeover, with client and broker id."""
    caplog.set_level(logging.INFO)
    keeper = door()
    async with serving(keeper) as served:
        for instance in INSTANCES:
            said = {"token": BROKER, "broker_id": 7, "instance": instance}
            async with greeted(served.tcp, **said) as client:
                await client.call("assign", [KEY], [], True)
    found = [shown(one, "action", "client", "broker_id") for one in entries(keeper, caplog)]
    assert found == [
        ("assignment", "broker", 7), ("takeover", "broker", 7), ("assignment", "broker", 7)
    ]  # fmt: skip


@pytest.mark.parametrize("rule", UnassignedWrites)
async def test_unassigned_write_then_is_stored_or_refused_as_configured_and_noted(
    rule: UnassignedWrites, caplog: pytest.LogCaptureFixture
) -> None:
    """With `refuse` no broker deletes a partition that was never assigned to it."""
    caplog.set_level(logging.INFO)
    keeper = door(unassigned_writes=rule)
    marked = partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, ORDERS, broker_id=7)
    args = (*delete_value(marked), {"unassigned": "store"})
    async with serving(keeper) as served:
        async with greeted(served.tcp, token=BOUND, broker_id=7) as client:
            await client.call("assign", [], [], True)
            if rule is UnassignedWrites.STORE:
                assert (await client.call("put_partition_delete", *args))[
                    2
                ] == "stored-not-assigned"
            else:
                with pytest.raises(NotAssigned):
                    await client.call("put_partition_delete", *args)
        async with greeted(served.tcp, token=ADMIN) as client:
            stored = (
                await client.call("partition_delete", KEY)
                if rule is UnassignedWrites.STORE
                else None
            )
    assert (stored is not None) == (rule is UnassignedWrites.STORE)
    entry = entries(keeper, caplog)[-1]
    assert shown(entry, "client", "method", "user_partition", "bound_to") == (
        "broker-7", "put_partition_delete", str(ORDERS), 7
    )  # fmt: skip
    assert entry["verdict"] == (
        "stored-not-assigned" if rule is UnassignedWrites.STORE else "refused"
    )


async def test_audit_when_off_then_nothing_is_written(caplog: pytest.LogCaptureFixture) -> None:
    """`access.audit = false` writes no entry."""
    caplog.set_level(logging.INFO)
    keeper = door(audit=False)
    async with serving(keeper) as served, greeted(served.tcp, token=BROKER, broker_id=7) as client:
        await client.call("assign", [KEY], [], True)
        await client.call("add_segment", KEY, segment_value(SEGMENT))
    assert entries(keeper, caplog) == []


def test_audit_when_refusals_flood_then_writes_have_room_and_the_loss_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Refusals beyond the room are counted and told, and never keep the entry of a write out."""
    caplog.set_level(logging.INFO)
    log, peer = AuditLog(), Peer("tcp", address="192.0.2.7")
    client = door().identify(Peer("unix", uid=0), None)
    for _ in range(REFUSALS_MAX + 5):
        log.refuse("credentials", None, peer, NotPermitted("no"))
    log.note("write", client, peer, verdict="applied")
    log.flush()
    assert log.lost == 5
    assert caplog.messages[-2:] == [
        "audit: write",
        "5 entries of the audit log were not written: too many waited",
    ]


def test_audit_when_the_stream_takes_nothing_then_entries_wait_in_their_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Entries are kept while there is no room, and written, the oldest first, when there is."""
    caplog.set_level(logging.INFO)
    log, peer = AuditLog(), Peer("tcp", address="192.0.2.7")
    client = door().identify(Peer("unix", uid=0), None)
    log.wait_room = lambda: False
    log.note("write", client, peer, offset=1)
    log.refuse("request", client, peer, TooBusy("too many"))
    log.note("write", client, peer, offset=2)
    assert not log.flush()
    assert caplog.records == []
    log.wait_room = lambda: True
    assert log.flush()
    assert [vars(one)["action"] for one in caplog.records] == ["write", "request", "write"]
    assert log.lost == 0
