"""Every error of rlmm has a status, and its JSON has all its fields."""

from __future__ import annotations

import pytest

from rlmm.errors import NotAssigned, NotReady, RlmmError, TooBusy, UnknownPartition, WrongCluster
from rlmm.http.refusals import headers_of, refused_view, status_of
from rlmm.views.values import plain
from rlmm.wire.errors import classes


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
