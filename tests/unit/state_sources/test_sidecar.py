"""A running service as a source: its address, its log in pieces, and its status."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from broker_adapter.address import TcpAddress, UnixAddress
from rlmm.errors import ConfigError, LogRecreated, LogUnavailable
from rlmm.inspection.check_thresholds import Thresholds, judge
from rlmm.log.protocol import LogBounds
from rlmm.metadata.ids import Uuid
from rlmm.records.record_set import RecordSet
from rlmm.state_sources.settings import SourceSettings
from rlmm.state_sources.sidecar_log import PLACES_MAX, SidecarLog
from rlmm.state_sources.sidecar_source import address_of, token_of
from rlmm.state_sources.sidecar_status import standing_of, with_lag
from rlmm.views.source_status import standing_totals
from rlmm.wire.hello import HelloAnswer, ServiceLimits
from rlmm.wire.operator_queries import LogEnds, LogPiece
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from broker_adapter.calls import Call
    from rlmm.state_sources.sidecar_link import SidecarLink

TOPIC, OTHER = Uuid(b"t" * 16), Uuid(b"o" * 16)
STATUS = {"cluster_id": "c", "topic_id": str(TOPIC), "partition_count": 9_999}


@dataclass
class Link:
    told: Callable[[str, list[Any]], object]
    where: str = "somewhere"
    server: HelloAnswer = field(
        default_factory=lambda: HelloAnswer(
            1, "s", "c", TOPIC, 9_999, "admin", "serve", ServiceLimits(timeout_ms_max=1_000)
        )
    )
    asked: list[tuple[str, list[Any]]] = field(default_factory=list)

    async def ask(self, call: Call[Any], timeout_s: float | None = None) -> Any:
        assert timeout_s is None or timeout_s > 0
        self.asked.append((call.method, call.args))
        return STATUS if call.method == "status" else self.told(call.method, call.args)


def log_of(told: Callable[[str, list[Any]], object]) -> tuple[SidecarLog, Link]:
    link = Link(told)
    return SidecarLog(cast("SidecarLink", link)), link


async def test_batch_when_it_comes_in_pieces_then_is_put_together() -> None:
    """The log requests each piece behind the former ones and joins them."""
    batch = b"0123456789"

    def told(_: str, args: list[Any]) -> object:
        skip = args[3]
        return LogPiece(batch[skip : skip + 4], 7, max(0, 6 - skip))

    log, link = log_of(told)
    assert await log.read(3, 5, timeout_s=1, bytes_max=4) == RecordSet(3, batch, 7)
    reads = [args for method, args in link.asked if method == "read_log"]
    assert [args[:5] for args in reads] == [[TOPIC, 3, 5, skip, 4] for skip in (0, 4, 8)]


async def test_batch_when_it_is_another_one_meanwhile_then_is_begun_anew() -> None:
    """The log starts a changed batch anew and gives up one that never stays the same."""
    answers = iter(
        [
            LogPiece(b"aaaa", 7, 4), LogPiece(b"bb", 7, 0),
            LogPiece(b"aaaa", 7, 4), LogPiece(b"bbbb", 8, 0),
            LogPiece(b"bb", 8, 0),
        ]
    )  # fmt: skip
    log, _ = log_of(lambda *_: next(answers))
    assert await log.read(0, 5, timeout_s=1, bytes_max=4) == RecordSet(0, b"bb", 8)
    for more in (None, LogPiece(b"", 7, 4), LogPiece(b"x", 7, 9)):

        def told(_: str, args: list[Any], more: LogPiece | None = more) -> object:
            return more if args[3] else LogPiece(b"aaaa", 7, 4)

        log, _ = log_of(told)
        with pytest.raises(LogUnavailable, match="the batch changes while it is read"):
            await log.read(0, 5, timeout_s=1, bytes_max=4)


def test_read_when_nothing_comes_then_waits_as_long_as_the_service_allows_and_again() -> None:
    """The log repeats waits of the service's maximum until its own deadline."""

    async def ask() -> None:
        log, link = log_of(lambda *_: None)
        assert await log.read(0, 5, timeout_s=0.12) is None
        waits = [args[5]["timeout_ms"] for method, args in link.asked if method == "read_log"]
        assert 2 <= len(waits) <= 4
        assert waits == sorted(waits, reverse=True)
        answers = iter([None, LogPiece(b"x", 6, 0)])
        log, link = log_of(lambda *_: next(answers))
        assert await log.read(0, 5, timeout_s=600) == RecordSet(0, b"x", 6)
        assert link.asked[-1][1][5] == {"timeout_ms": 1_000}

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(ask())


async def test_bounds_when_of_very_many_partitions_then_are_asked_for_in_parts() -> None:
    """Each request has at most the service's number of partitions, and errors keep their places."""
    away = LogUnavailable("away")

    def told(_: str, args: list[Any]) -> object:
        return TOPIC, [away if place == 3 else LogEnds(place, place + 1) for place in args[0]]

    log, link = log_of(told)
    count = 2 * PLACES_MAX + 1
    found = await log.bounds(range(count), timeout_s=1)
    assert found == {n: away if n == 3 else LogBounds(n, n + 1) for n in range(count)}
    assert [len(args[0]) for method, args in link.asked if method == "log_bounds"] == [
        PLACES_MAX, PLACES_MAX, 1,
    ]  # fmt: skip


async def test_bounds_when_of_another_topic_then_are_not_taken() -> None:
    """Bounds of another topic are refused, because the records read belong to the deleted one."""
    log, _ = log_of(lambda *_: (OTHER, [LogEnds(0, 1)]))
    with pytest.raises(LogRecreated, match="is gone"):
        await log.bounds([0], timeout_s=1)


def settings(sidecar: str, **said: Any) -> SourceSettings:
    return SourceSettings(sidecar=sidecar, **said)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rlmm-data/rlmm.sock", UnixAddress("rlmm-data/rlmm.sock")),
        ("/run/rlmm.sock", UnixAddress("/run/rlmm.sock")),
        ("unix:rlmm.sock", UnixAddress("rlmm.sock")),
        ("unix:/a:1", UnixAddress("/a:1")),
        ("localhost:9", TcpAddress("localhost", 9)),
        ("10.0.0.1:65535", TcpAddress("10.0.0.1", 65_535)),
        ("[::1]:9", TcpAddress("::1", 9)),
    ],
)
def test_address_when_named_then_is_that_of_a_socket_or_a_port(text: str, expected: object) -> None:
    """A text with a slash or behind `unix:` is a socket, and any other is a host and port."""
    assert address_of(settings(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "rlmm.sock",
        "host",
        "host:",
        ":9",
        "host:0",
        "host:65536",
        "::1:9",
        "h:\u0661",
        "h:" + 5_000 * "9",
    ],
)
def test_address_when_it_is_none_then_refused_by_what_it_may_be(text: str) -> None:
    """The error for a wrong address names the possible forms, and no service is asked."""
    with pytest.raises(ConfigError, match="--sidecar is HOST:PORT, or the path of a socket"):
        address_of(settings(text))


def test_tls_when_asked_for_then_is_of_a_port_alone(tmp_path: Path) -> None:
    """A file of it asks for it, too; one that cannot be used is named."""
    found = address_of(settings("localhost:9", is_tls=True))
    assert isinstance(found, TcpAddress)
    assert found.tls is not None
    with pytest.raises(ConfigError, match="TLS is for HOST:PORT"):
        address_of(settings("/run/rlmm.sock", is_tls=True))
    absent = tmp_path / "absent.pem"
    with pytest.raises(ConfigError, match=f"TLS cannot be set up with {absent}: "):
        address_of(settings("localhost:9", ca_file=absent))


def test_token_when_no_file_is_named_then_is_none(tmp_path: Path) -> None:
    """White space around it is none of it."""
    assert token_of(settings("localhost:9")) is None
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text("\n secret-0123456789 \n")
    assert token_of(settings("localhost:9", token_file=path)) == "secret-0123456789"
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="cannot be read: it is not ASCII"):
        token_of(settings("localhost:9", token_file=path))


def test_token_when_every_user_may_read_its_file_then_is_refused(tmp_path: Path) -> None:
    """A client sends no token that every user of its machine could take."""
    path = tmp_path / "token"
    path.write_text("secret-0123456789")
    path.chmod(0o644)
    with pytest.raises(ConfigError, match=rf"every user of the machine.*chmod o= {path}$"):
        token_of(settings("localhost:9", token_file=path))


STATUS_TOPIC = Uuid(b"t" * 16)
SAID: dict[Any, Any] = {"cluster_id": "c", "topic_id": str(STATUS_TOPIC), "partition_count": 2}


def test_standing_when_the_service_says_little_then_the_rest_is_not_known() -> None:
    """Facts that an older service leaves out are unknown, not zero."""
    said = {**SAID, "metadata_partitions": [{"metadata_partition": 1, "state": "stale"}, "odd", {}]}
    found = standing_of(said, "here", "serve")
    absent, told = found.places
    assert (absent.metadata_partition, absent.state, absent.why) == (0, "absent", "absent")
    assert (told.state, told.position, told.lag_records, told.lag_s) == ("stale", None, None, None)
    assert (told.segments, told.user_partitions, told.is_history_complete) == (None, None, None)
    assert not found.is_caught_up
    assert found.notes[-1].startswith("1 of 2 metadata partitions are not read by the service")
    assert not found.left_out, "whether that is meant so it does not say"


def test_standing_when_the_service_was_not_given_all_then_what_it_has_is_what_counts() -> None:
    """A service is complete with the partitions of its broker."""
    place = {"metadata_partition": 1, "state": "open", "position": 3, "segments": {}}
    said = {**SAID, "metadata_partitions": [place], "is_assignment_known": True}
    found = standing_of(said, "here", "serve")
    assert [one.state for one in found.places] == ["not-assigned", "open"]
    assert found.is_caught_up
    assert found.left_out == found.notes[-1]
    assert found.left_out.endswith("; --bootstrap-server shows all")
    assert [one.metadata_partition for one in found.assigned] == [1]
    assert standing_totals(found.places).metadata_partitions == 1
    assert not judge(found, Thresholds())
    waiting = standing_of({**said, "is_assignment_known": False}, "here", "serve")
    assert (waiting.places[0].state, waiting.places[0].why) == ("absent", "assignment-unknown")
    assert (waiting.is_caught_up, waiting.left_out) == (False, "")


def test_standing_when_all_is_said_then_is_told_in_our_words() -> None:
    """The standing has the service's facts, with ages in milliseconds."""
    place = {
        "metadata_partition": 0, "state": "open", "why": None, "detail": "", "position": 5,
        "target": 4, "log_start": 1, "log_end": 5, "lag_records": 0, "user_partitions": 3,
        "segments": {"COPY_SEGMENT_STARTED": 2}, "size_bytes": 9, "rejected": {"x": 1},
        "undecodable": {}, "history": {"is_complete": False}, "snapshot": {"age_ms": 1_500},
    }  # fmt: skip
    said = {**SAID, "partition_count": 1, "metadata_partitions": [place]}
    found = standing_of(said, "here", "observer")
    (told,) = found.places
    assert found.is_caught_up
    assert found.notes == ("the service observes: it writes nothing",)
    assert (told.lag_s, told.snapshot_age_s, told.is_history_complete) == (0.0, 1.5, False)
    assert (told.segments, dict(told.rejected)) == ({"COPY_SEGMENT_STARTED": 2}, {"x": 1})
    assert with_lag(found, {0: 3.5}).places[0].lag_s == 3.5
    assert with_lag(found, {}) == found
