"""HTTP requests: their parameters, refusals and settings."""

from __future__ import annotations

import pytest

from rlmm.errors import (
    ConfigError,
    InvalidArgument,
    NotAssigned,
    NotReady,
    RlmmError,
    TooBusy,
    UnknownPartition,
    WrongCluster,
)
from rlmm.http.parameters import EPOCH, FRESHNESS, OFFSET, read_offsets, read_parameters
from rlmm.http.refusals import headers_of, refused_view, status_of
from rlmm.http.settings import HttpSettings, LocalRole
from rlmm.views.values import plain
from rlmm.wire.errors import classes


@pytest.mark.parametrize(
    ("text", "offsets"),
    [("0:5", {0: 5}), ("7:0,3:12", {7: 0, 3: 12}), ("1:-1", {1: -1}), (" 0:5 , 1:6", {0: 5, 1: 6})],
)
def test_token_when_well_formed_then_it_is_offsets(text: str, offsets: dict[int, int]) -> None:
    """A well-formed read token is a map of offsets by metadata partition."""
    assert read_offsets("at_least", text) == offsets


@pytest.mark.parametrize("text", ["", "5", "0:", ":5", "0:5,0:6", "0:-2", "a:1", "0:1,", "0:1e3"])
def test_token_when_it_means_nothing_then_it_is_refused(text: str) -> None:
    """A wrong token is refused as a whole."""
    with pytest.raises(InvalidArgument, match="at_least"):
        read_offsets("at_least", text)


def test_parameters_when_said_twice_then_they_are_refused() -> None:
    """A parameter that is given twice is refused."""
    with pytest.raises(InvalidArgument, match="epoch is said twice"):
        read_parameters((EPOCH,), [("epoch", "1"), ("epoch", "1")])


def test_parameters_when_read_then_only_what_is_said_is_there() -> None:
    """A parameter that may be left out has no value then."""
    said = [("epoch", "007"), ("offset", "1")]
    with pytest.raises(InvalidArgument, match="epoch"):
        read_parameters((EPOCH, OFFSET, *FRESHNESS), said)
    said = [("epoch", "7"), ("offset", str(2**63 - 1)), ("linearizable", "")]
    assert read_parameters((EPOCH, OFFSET, *FRESHNESS), said) == {
        "epoch": 7,
        "offset": 2**63 - 1,
        "linearizable": True,
    }


@pytest.mark.parametrize("cls", list(classes()), ids=lambda cls: cls.code)
def test_status_of_any_error_says_whose_fault_it_is(cls: type[RlmmError]) -> None:
    """A retriable error is never a status of the client, and every status is 4xx or 5xx."""
    error = cls("it did not work")
    status = status_of(error)
    assert 400 <= status <= 599
    if error.retriable:
        assert status in {429, 500, 503}
    assert refused_view(error).error.code == cls.code
    assert ("Retry-After" in headers_of(error, status)) == error.retriable


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotReady("later"), 503),
        (NotAssigned("elsewhere"), 421),
        (UnknownPartition("never heard"), 404),
        (WrongCluster("another"), 404),
        (TooBusy("slower"), 429),
    ],
    ids=lambda value: getattr(value, "code", ""),
)
def test_status_when_an_answer_would_be_elsewhere_then_so(error: RlmmError, status: int) -> None:
    """The four that a client has to tell apart are four."""
    assert status_of(error) == status


def test_retry_when_the_error_says_when_then_that_is_said_in_whole_seconds() -> None:
    """The header rounds the hint up to whole seconds and is at least one."""
    assert headers_of(NotReady("later", retry_after_ms=2_001), 503) == {"Retry-After": "3"}
    assert headers_of(NotReady("later", retry_after_ms=1), 503) == {"Retry-After": "1"}


def test_error_when_shown_then_its_fields_are_there_by_name() -> None:
    """The JSON of an error has the same fields as the frame protocol."""
    error = NotReady("later", position=3, target=10, metadata_partition=1)
    shown = plain(refused_view(error).error)
    assert shown["retriable"] is True
    fields = shown["fields"]
    assert isinstance(fields, dict)
    assert (fields["position"], fields["target"], fields["records_left"]) == (3, 10, 7)


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:7405", ("127.0.0.1", 7405)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:1", ("localhost", 1)),
        ("none", None),
    ],
)
def test_listen_when_an_address_then_is_split(listen: str, address: tuple[str, int] | None) -> None:
    """The address is host and port, or none."""
    assert HttpSettings(listen=listen).address == address


@pytest.mark.parametrize("listen", ["", "7405", ":7405", "::1:80", "h:70000", "h:x", "h:"])
def test_listen_when_it_is_no_address_then_it_is_refused(listen: str) -> None:
    """The error names the key."""
    with pytest.raises(ConfigError, match=r"http\.listen"):
        HttpSettings(listen=listen)


@pytest.mark.parametrize(
    "name",
    [
        "connections_max", "head_timeout_ms", "idle_timeout_ms", "body_timeout_ms",
        "slow_client_ms",
        "wait_timeout_ms_max", "client_max_size", "lookups_max", "heartbeat_age_ms_max",
        "stop_timeout_ms",
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", [0, -1, 2**31, True])
def test_number_when_it_cannot_work_then_it_is_refused_by_name(name: str, value: int) -> None:
    """The settings refuse an impossible number by key."""
    with pytest.raises(ConfigError, match=rf"http\.{name}"):
        HttpSettings(**{name: value})  # type: ignore[arg-type]


def test_questions_when_nothing_is_said_then_are_closed_and_health_and_metrics_open() -> None:
    """By default questions are closed, and health and metrics are open and show no segment."""
    settings = HttpSettings()
    assert settings.local_role is LocalRole.NONE
    assert (settings.health_open, settings.metrics_open) == (True, True)
