"""How much one client may take."""

import pytest

from rlmm.access.limits import ClientFigures, ClientLimits, TokenBucket
from rlmm.access.roles import Client, Role
from rlmm.errors import TooBusy

A, B = Client("a", Role.READER), Client("b", Role.READER)
UNLIMITED = Client("u", Role.ADMIN, is_limited=False)


def test_bucket_then_lets_a_seconds_worth_pass_at_once_and_then_the_rate() -> None:
    """A burst of one second's worth, then as many as time has brought; never more than that."""
    bucket = TokenBucket(4, now_s=100.0)
    assert [bucket.take(100.0) for _ in range(6)] == [True] * 4 + [False] * 2
    assert [bucket.take(100.25) for _ in range(2)] == [True, False]
    assert [bucket.take(9_999.0) for _ in range(6)] == [True] * 4 + [False] * 2


def test_bucket_when_time_goes_back_then_gives_nothing_for_it() -> None:
    """A clock that is set back does not fill the allowance again."""
    bucket = TokenBucket(1, now_s=10.0)
    assert bucket.take(10.0)
    assert not bucket.take(5.0)
    assert not bucket.take(10.0)
    assert bucket.take(11.0)


def test_enter_when_a_client_has_enough_connections_then_only_that_one_is_refused() -> None:
    """The connections of a client are counted by name, and a closed one frees its place."""
    limits = ClientLimits(2, None, lambda: 0.0)
    limits.enter(A)
    limits.enter(A)
    with pytest.raises(TooBusy, match="a has 2 connections, as many as it may"):
        limits.enter(A)
    limits.enter(B)
    for _ in range(5):
        limits.enter(UNLIMITED)
    limits.leave(A)
    limits.enter(A)
    assert limits.figures() == {
        "a": ClientFigures(2, 1, 0), "b": ClientFigures(1, 0, 0), "u": ClientFigures(5, 0, 0),
    }  # fmt: skip


def test_meter_when_a_client_asks_too_often_then_all_its_connections_share_one_count() -> None:
    """The connections of one client share its allowance."""
    now_s = 0.0
    limits = ClientLimits(9, 3, lambda: now_s)
    first, second, other = limits.meter(A), limits.meter(A), limits.meter(B)
    assert first is not None
    assert second is not None
    assert other is not None
    first()
    second()
    first()
    with pytest.raises(TooBusy, match="a asks more often than 3 times a second"):
        second()
    other()
    now_s = 0.4
    second()
    assert limits.figures()["a"] == ClientFigures(0, 0, 1)


def test_meter_when_there_is_no_limit_then_there_is_none() -> None:
    """Without a limit the meter counts nothing."""
    assert ClientLimits(9, None, lambda: 0.0).meter(A) is None
    assert ClientLimits(9, 3, lambda: 0.0).meter(UNLIMITED) is None


def test_keep_then_forgets_who_has_no_right_and_no_connection() -> None:
    """The limits keep only names with rights or connections, however often tokens change."""
    limits = ClientLimits(9, None, lambda: 0.0)
    for client in (A, B):
        limits.enter(client)
    limits.leave(A)
    limits.keep({"c"})
    assert set(limits.figures()) == {"b"}
