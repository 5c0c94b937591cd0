"""Errors that travel: equal ones come back, and newer ones make sense to an older side."""

from typing import Any

import pytest

from rlmm import errors
from rlmm.errors import ProtocolError, RlmmError
from rlmm.wire.errors import CODES_1, MESSAGE_CHARS_MAX, classes, error_value, read_error
from tests.support.server.recorded_frames import made


def as_received(error: RlmmError) -> list[Any]:
    code, message, retriable, fields = error_value(error)
    assert isinstance(fields, dict)
    arrays = {name: list(one) if isinstance(one, tuple) else one for name, one in fields.items()}
    return [code, message, retriable, arrays]


@pytest.mark.parametrize("cls", list(classes()), ids=lambda cls: cls.code)
def test_error_comes_back_equal(cls: type[RlmmError]) -> None:
    """Class, message and every field are those that were sent."""
    for error in made(cls):
        if error is None:
            continue
        back = read_error(as_received(error))
        assert type(back) is cls
        assert (str(back), vars(back)) == (str(error), vars(error))


def test_codes_of_version_1_are_in_the_tree_and_later_ones_name_one_of_them() -> None:
    """Every error has a code of version 1 or names one as its base."""
    assert {cls.code for cls in classes()} >= CODES_1
    later = {cls: error_value(cls("x"))[3] for cls in classes() if cls.code not in CODES_1}
    assert later == {errors.Superseded: {"base": "not-permitted"}}


READ: dict[str, tuple[list[Any], type[RlmmError], dict[str, object]]] = {
    "newer, with a base": (
        ["log-asleep", "later", True, {"base": "log", "nap_ms": 5}],
        errors.LogError,
        {"code": "log-asleep", "retriable": True},
    ),
    **{
        f"newer, base {fields}": (
            ["log-asleep", "later", False, fields],
            RlmmError,
            {"code": "log-asleep", "retriable": False},
        )
        for fields in ({}, {"base": "newer-still"}, {"base": 5}, {"base": None})
    },
    "other flag": (
        ["stopped", "later", True, {"stored_at": None}],
        errors.Stopped,
        {"retriable": True},
    ),
    "other fields": (
        ["not-ready", "later", True, {"reason": "behind", "mood": "bad"}],
        errors.NotReady,
        {"reason": "behind", "position": None, "retry_after_ms": 1_000},
    ),
}


@pytest.mark.parametrize(("value", "cls", "said"), READ.values(), ids=READ)
def test_error_when_the_other_side_is_newer_is_read_as_the_nearest_known(
    value: list[Any], cls: type[RlmmError], said: dict[str, object]
) -> None:
    """The other side's code and retriable flag hold; unknown fields are passed over."""
    error = read_error(value)
    assert type(error) is cls
    assert (str(error), {name: getattr(error, name) for name in said}) == ("later", said)
    assert (errors.LogError.code, errors.LogError.retriable) == ("log", False)
    assert not errors.Stopped.retriable


def test_error_when_its_class_is_not_in_the_tree_is_sent_with_its_base() -> None:
    """A code that version 1 did not have names the nearest that it had."""

    class LogAsleep(errors.LogUnavailable):
        code = "log-asleep"

    try:
        value = error_value(LogAsleep("later"))
        assert value == ["log-asleep", "later", True, {"base": "log-unavailable"}]
        assert type(read_error(value)) is errors.LogUnavailable
    finally:
        del LogAsleep


def test_message_when_it_is_too_long_is_cut() -> None:
    """A long message is cut, so a refusal stays small."""
    message = error_value(RlmmError("x" * 100_000))[1]
    assert isinstance(message, str)
    assert len(message) == MESSAGE_CHARS_MAX


def test_message_when_it_is_no_utf_8_is_sent_all_the_same() -> None:
    """A name that the operating system gave, with bytes that are no text, does not stop it."""
    assert error_value(RlmmError("file \udcff"))[1] == "file \\udcff"


def test_error_when_it_is_none_is_refused() -> None:
    """A value that is no error is a protocol error."""
    for value in (None, [], "error", {"code": "error"}, [b"error", "", False, {}]):
        with pytest.raises(ProtocolError):
            read_error(value)
