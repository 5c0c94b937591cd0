"""The methods that each role may call, over a real socket."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.access.authentication import Authenticator
from rlmm.access.roles import Role
from rlmm.access.settings import AccessSettings, TlsSettings
from rlmm.base.secret import Secret
from rlmm.errors import NotPermitted, ProtocolError, RlmmError, TooBusy
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.wire.methods import METHODS
from rlmm.wire.values import delete_value, partition_value, segment_value, update_value
from tests.support.builders import finished, partition_delete, segment_id, started, tp
from tests.support.engines import World, until, until_open
from tests.support.server.access_files import ADMIN, BOUND, BROKER, READER, TOKENS, write_tokens
from tests.support.server.frame_servers import Listening, listening
from tests.support.server.raw_frames import FrameClient, connected, greeted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PLACES = 1
ORDERS = tp("orders", 7)
KEY = partition_value(ORDERS)
SEGMENT = started(segment_id(1, ORDERS), broker_id=7)
TOKEN_OF = {Role.READER: READER, Role.BROKER: BROKER, Role.ADMIN: ADMIN}
ARGS: dict[str, tuple[Any, ...]] = {
    "hello": ({"versions": [1], "client": "again"},),
    "ping": (),
    "add_segment": (KEY, segment_value(SEGMENT)),
    "update_segment": tuple(update_value(finished(SEGMENT.id))),
    "put_partition_delete": tuple(
        delete_value(partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, ORDERS))
    ),
    "segment": (KEY, SEGMENT.id.uuid),
    "segment_for": (KEY, 0, 5),
    "segments_for": ([[KEY, 0, 5]],),
    "highest_offset": (KEY, 0),
    "next_segment_with_txn_index": (KEY, 0, 5),
    "list_segments": (KEY, None, 10),
    "list_segments_by_epoch": (KEY, 0, None, 10),
    "remote_log_size": (KEY, None),
    "partition_delete": (KEY,),
    "is_ready": (KEY,),
    "wait_ready": (KEY, {"timeout_ms": 1_000}),
    "assign": ([KEY], [], True),
    "stop_partitions": ([KEY],),
    "read_token": (),
    "status": (),
    "list_partitions": (0, None, 10),
    "open_image": (KEY, 1_000),
    "read_image": (0, 1_000),
    "close_image": (),
    "log_bounds": ([0],),
    "read_log": (bytes(16), 0, 0, 0, 1_000),
}


def door(**access: Any) -> Authenticator:
    return Authenticator(AccessSettings(tokens=Secret(TOKENS), **access), TlsSettings())


@asynccontextmanager
async def serving(keeper: Authenticator, **settings: Any) -> AsyncIterator[Listening]:
    world = World(PLACES)
    async with world.engine() as engine:
        await until_open(engine, *range(PLACES))
        async with listening(engine, door=keeper, listen="127.0.0.1:0", **settings) as served:
            yield served


async def outcome(client: FrameClient, method: str) -> str:
    """Return the code of the refusal, or "answered"."""
    try:
        await client.call(method, *ARGS[method])
    except RlmmError as error:
        return error.code
    return "answered"


def test_table_then_has_every_method() -> None:
    """The table of this module has every method."""
    assert set(ARGS) == set(METHODS)


WRITES = {"add_segment", "update_segment", "put_partition_delete", "assign", "stop_partitions"}
PAST = {"log_bounds", "read_log"}
"""Methods that show every event ever stored, of any partition."""
REFUSED = {Role.READER: WRITES | PAST, Role.BROKER: PAST, Role.ADMIN: set[str]()}


@pytest.mark.parametrize("way", ["unix", "tcp"])
@pytest.mark.parametrize("role", Role)
async def test_every_method_then_is_refused_to_every_lesser_role(role: Role, way: str) -> None:
    """Every method refuses exactly the roles below its own with not permitted."""
    async with serving(door()) as served:
        for method in METHODS.values():
            async with connected(served.path if way == "unix" else served.tcp) as client:
                said = {} if role is Role.READER else {"broker_id": 7}
                assert (await client.hello(token=TOKEN_OF[role], **said))["role"] == role
                found = await outcome(client, method.name)
                is_refused = method.name in REFUSED[role]
                assert (found == NotPermitted.code) == is_refused, method.name
                if method.name == "hello":
                    assert found == ProtocolError.code


@pytest.mark.parametrize("way", ["unix", "tcp"])
@pytest.mark.parametrize("method", sorted(METHODS))
async def test_every_method_then_is_refused_before_hello(method: str, way: str) -> None:
    """Without hello or with a wrong token every method is refused and the connection ends."""
    keeper = door(unix_role="none")
    async with serving(keeper) as served:
        for token in (None, "wrong-token-0123456789"):
            async with connected(served.path if way == "unix" else served.tcp) as client:
                if method == "hello":
                    with pytest.raises(NotPermitted, match="token"):
                        await client.hello(**({} if token is None else {"token": token}))
                else:
                    assert await outcome(client, method) == NotPermitted.code
                assert await client.ended()


async def test_broker_token_when_bound_then_no_other_broker_is_claimed_or_written_for() -> None:
    """A client bound to a broker may claim and write for that broker alone."""
    async with serving(door()) as served:
        for said in ({"broker_id": 8}, {}):
            async with connected(served.tcp) as client:
                with pytest.raises(NotPermitted, match="broker-7 speaks for broker 7 only"):
                    await client.hello(token=BOUND, **said)
                assert await client.ended()
        async with greeted(served.tcp, token=BOUND, broker_id=7) as client:
            await client.call("assign", [KEY], [], True)
            assert (await client.call("add_segment", KEY, segment_value(SEGMENT)))[2] == "applied"
            other = started(segment_id(2, ORDERS), broker_id=8)
            with pytest.raises(NotPermitted, match="broker-7 writes for broker 7 only"):
                await client.call("add_segment", KEY, segment_value(other))
        async with greeted(served.tcp, token=BROKER, broker_id=8) as client:
            assert (await client.call("ping")) is None


async def test_tokens_when_taken_away_then_open_connections_end(tmp_path: Path) -> None:
    """Clients with a removed token are disconnected within a second and refused afterwards."""
    path = write_tokens(tmp_path / "tokens")
    keeper = Authenticator(AccessSettings(tokens_file=path, refresh_ms=100), TlsSettings())
    async with serving(keeper) as served:
        async with (
            greeted(served.tcp, token=READER) as gone,
            greeted(served.tcp, token=ADMIN) as kept,
            greeted(served.path) as local,
        ):
            write_tokens(path, TOKENS.replace(READER, "renewed-token-0123456789"))
            keeper.look()
            assert await gone.ended()
            for client in (kept, local):
                assert await client.call("ping") is None
        assert served.sidecar.statistics().cut_off == {"unwelcome": 1}
        async with connected(served.tcp) as client:
            with pytest.raises(NotPermitted):
                await client.hello(token=READER)
        async with greeted(served.tcp, token="renewed-token-0123456789") as client:
            assert await client.call("ping") is None


async def test_limits_when_a_client_takes_too_much_then_only_that_client_is_refused() -> None:
    """A limit counts by name over all connections, and released parts are free again."""
    now_s = 0.0
    settings = AccessSettings(
        tokens=Secret(TOKENS), client_connections_max=2, client_requests_per_second_max=3
    )
    keeper = Authenticator(settings, TlsSettings(), now_s=lambda: now_s)
    async with serving(keeper) as served:
        async with (
            greeted(served.tcp, token=READER) as one,
            greeted(served.path, token=READER) as two,
            greeted(served.tcp, token=ADMIN) as other,
        ):
            async with connected(served.tcp) as client:
                with pytest.raises(TooBusy, match="reader has 2 connections"):
                    await client.hello(token=READER)
                assert await client.ended()
            for client in (one, two, one):
                await client.call("ping")
            with pytest.raises(TooBusy, match="reader asks more often than 3 times a second"):
                await two.call("ping")
            await other.call("ping")
            now_s = 1.0
            await two.call("ping")
        await until(lambda: keeper.statistics().clients["reader"].connections == 0)
        async with greeted(served.tcp, token=READER):
            found = keeper.statistics().clients["reader"]
        assert (found.connections, found.connections_refused, found.requests_refused) == (1, 1, 1)


async def test_plain_tcp_from_this_machine_then_takes_tokens() -> None:
    """Plain TCP from this machine takes tokens, and other addresses need TLS."""
    async with serving(door()) as served, greeted(served.tcp, token=READER) as client:
        assert await client.call("ping") is None
