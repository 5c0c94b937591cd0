"""
Errors on the wire: `[code, message, retriable, fields]`, to and from their classes.

All of `rlmm.errors` is sent but `NEVER_SENT`. A code of a newer version gives the nearest known
class, with that code and its `retriable`. Invariant: reading what `error_value` gives makes an
equal error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm import errors
from rlmm.errors import ProtocolError, RlmmError
from rlmm.metadata.ids import INT64_MAX, INT64_MIN
from rlmm.wire.value_checks import form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MESSAGE_CHARS_MAX: Final = 4_096
"""Longer messages are cut: they are for people."""
CODE_CHARS_MAX: Final = 64
BASE: Final = "base"
"""Field of an error whose code is not one of version 1: the code of the nearest class that is."""


def _text(value: object) -> str:
    if type(value) is not str:
        raise TypeError
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _integer(value: object) -> int:
    if type(value) is not int or not INT64_MIN <= value <= INT64_MAX:
        raise TypeError
    return value


def _integer_or_none(value: object) -> int | None:
    return None if value is None else _integer(value)


def _place(value: object) -> tuple[int, int] | None:
    if value is None:
        return None
    if type(value) is not list or len(value) != 2:
        raise TypeError
    return _integer(value[0]), _integer(value[1])


FIELDS: Final[Mapping[type[RlmmError], Mapping[str, Callable[[object], object]]]] = {
    errors.EventRejected: {
        "reason": _text,
        "current": _text_or_none,
        "requested": _text_or_none,
        "stored_at": _place,
    },
    errors.NotAssigned: {"metadata_partition": _integer_or_none},
    errors.NotReady: {
        "reason": _text,
        "user_partition": _text_or_none,
        "metadata_partition": _integer_or_none,
        "position": _integer_or_none,
        "target": _integer_or_none,
        "retry_after_ms": _integer,
    },
    errors.Unresolved: {"stored_at": _place},
    errors.LogTruncated: {"log_start": _integer_or_none, "next_offset": _integer_or_none},
}

DERIVED_FIELDS: Final[Mapping[type[RlmmError], tuple[str, ...]]] = {
    errors.NotReady: ("records_left",)
}
"""Sent for readers that do not want to compute them, and not read here."""

CODES_1: Final = frozenset(
    (
        "error", "config", "topic-absent", "folder-in-use", "request", "invalid-argument",
        "not-publishable", "not-writable", "not-permitted", "protocol", "unsupported-version",
        "unknown-method", "wrong-cluster", "event-rejected", "not-found", "unknown-partition",
        "not-assigned", "not-ready", "over-budget", "too-busy", "sidecar-unavailable", "unresolved",
        "outcome-unknown", "assignment-lost", "stopped", "pump-failed", "log", "log-unavailable",
        "log-truncated", "log-recreated", "append-uncertain", "append-refused", "log-not-permitted",
        "log-damaged", "image-corrupt", "snapshot", "snapshot-corrupt", "snapshot-foreign",
        "snapshot-unsupported", "snapshot-refused", "part-failed", "stop-timed-out",
        "engine-failed",
    )
)  # fmt: skip
"""The codes that every client of version 1 knows; never added to."""
NEVER_SENT: Final = frozenset(
    (
        errors.StoreError, errors.EngineUnfit, errors.PlanStale, errors.TopicBusy,
        errors.FileAbsent, errors.NotSealed, errors.DataLost, errors.TierUnreadable,
    )
)  # fmt: skip
"""Classes that only jobs raise, or that are about files, with all derived from them."""


def classes(root: type[RlmmError] = RlmmError) -> Iterator[type[RlmmError]]:
    """Yield every error class that is sent, each before those derived from it."""
    yield root
    for derived in root.__subclasses__():
        if derived.__module__.startswith("rlmm.errors.") and derived not in NEVER_SENT:
            yield from classes(derived)


_BY_CODE: Final = {cls.code: cls for cls in classes()}


def _inherited(cls: type[RlmmError]) -> dict[str, Callable[[object], object]]:
    return {name: read for base in cls.__mro__ for name, read in FIELDS.get(base, {}).items()}


_READERS: Final = {cls: _inherited(cls) for cls in classes()}
_SENT: Final = {
    cls: (*_READERS[cls], *(name for base in cls.__mro__ for name in DERIVED_FIELDS.get(base, ())))
    for cls in classes()
}


def fields_of(cls: type[RlmmError]) -> tuple[str, ...]:
    """Return the fields of an error of *cls* but its message, in the order of sending."""
    return _SENT[cls]


def error_value(error: RlmmError) -> list[object]:
    """*error* as it is sent, with its message cut to the longest."""
    cls = _known_class(type(error))
    fields = {name: getattr(error, name) for name in _SENT[cls]}
    if error.code not in CODES_1:
        fields[BASE] = next(
            base.code
            for base in cls.__mro__
            if issubclass(base, RlmmError) and base.code in CODES_1
        )
    message = str(error)[:MESSAGE_CHARS_MAX].encode(errors="backslashreplace").decode()
    return [error.code, message, error.retriable, fields]


def _known_class(cls: type[RlmmError]) -> type[RlmmError]:
    return cls if cls in _SENT else next(base for base in cls.__mro__ if base in _SENT)


def read_error(value: object) -> RlmmError:
    if type(value) is not list or len(value) != 4:
        msg = f"an error is an array of four, got {form(value)}"
        raise ProtocolError(msg)
    code, message, retriable, fields = value
    if type(code) is not str or not 1 <= len(code) <= CODE_CHARS_MAX:
        msg = f"the code of an error is a short text, got {form(code)}"
        raise ProtocolError(msg)
    if type(message) is not str or type(retriable) is not bool or type(fields) is not dict:
        msg = f"the error {code!r} is not text, truth value and map"
        raise ProtocolError(msg)
    cls = _BY_CODE.get(code)
    if cls is None:
        base = fields.get(BASE)
        cls = _BY_CODE.get(base, RlmmError) if type(base) is str else RlmmError
    error = cls(message, **_read_fields(cls, code, fields))
    # An attribute of the instance hides that of its class: what the other side says holds.
    if error.code != code:
        error.__dict__["code"] = code
    if error.retriable != retriable:
        error.__dict__["retriable"] = retriable
    return error


def _read_fields(
    cls: type[RlmmError], code: str, fields: dict[object, object]
) -> dict[str, object]:
    """Return the arguments of the constructor; skips unknown fields of a newer side."""
    found: dict[str, object] = {}
    for name, read in _READERS[cls].items():
        if name in fields:
            try:
                found[name] = read(fields[name])
            except TypeError:
                msg = f"the field {name!r} of the error {code!r} is no {form(fields[name])}"
                raise ProtocolError(msg) from None
    return found
