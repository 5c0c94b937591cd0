"""
Options: the map that may follow the arguments of a call.

An unknown one is refused by name: a client that asks for a fresh answer must not get another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypedDict

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX
from rlmm.wire.queries import read_token
from rlmm.wire.value_checks import flag, mapping, refuse, uint31

if TYPE_CHECKING:
    from collections.abc import Mapping

Unassigned = Literal["refuse", "store"]


class ReadOptions(TypedDict, total=False):
    """Keywords of a call that reads: how fresh its answer must be, and when it must be there."""

    at_least: Mapping[int, int] | None
    """Events at these offsets, by metadata partition, must have been applied."""
    linearizable: bool
    """Every event that was stored before the call must have been applied."""
    timeout_s: float | None


@dataclass(frozen=True, slots=True)
class FreshnessOptions:
    at_least: Mapping[int, int] | None = None
    """Events at these offsets, by metadata partition, must have been applied."""
    linearizable: bool = False
    """Every event that was stored before the call must have been applied."""
    timeout_ms: int | None = None

    @property
    def waits(self) -> bool:
        return self.linearizable or bool(self.at_least)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    unassigned: Unassigned = "refuse"
    timeout_ms: int | None = None


READ_DEFAULTS: Final = FreshnessOptions()
WRITE_DEFAULTS: Final = WriteOptions()


def read_options_value(options: FreshnessOptions) -> dict[str, object] | None:
    """`None` where all are defaults."""
    value: dict[str, object] = {}
    if options.at_least:
        value["at_least"] = read_token(dict(options.at_least), "at_least")
    if options.linearizable:
        value["linearizable"] = True
    return _with_timeout(value, options.timeout_ms)


def write_options_value(options: WriteOptions) -> dict[str, object] | None:
    """`None` where all are defaults."""
    value: dict[str, object] = {}
    if options.unassigned != "refuse":
        value["unassigned"] = options.unassigned
    return _with_timeout(value, options.timeout_ms)


def wait_options_value(timeout_ms: int | None) -> dict[str, object] | None:
    """`None` where all are defaults."""
    return _with_timeout({}, timeout_ms)


def _with_timeout(value: dict[str, object], timeout_ms: int | None) -> dict[str, object] | None:
    if timeout_ms is not None:
        value["timeout_ms"] = timeout_ms
    return value or None


def read_read_options(value: object = None, timeout_ms_max: int = INT32_MAX) -> FreshnessOptions:
    """Nil stands for the defaults. A longer time-out is cut to the longest."""
    if value is None:
        return READ_DEFAULTS
    options = mapping(value, "the options of a read")
    _require_known(options, ("at_least", "linearizable", "timeout_ms"), "a read")
    at_least = options.get("at_least")
    return FreshnessOptions(
        None if at_least is None else read_token(at_least, "at_least"),
        flag(options.get("linearizable", False), "linearizable"),
        _timeout_ms(options, timeout_ms_max),
    )


def read_write_options(value: object = None, timeout_ms_max: int = INT32_MAX) -> WriteOptions:
    """Nil stands for the defaults. A longer time-out is cut to the longest."""
    if value is None:
        return WRITE_DEFAULTS
    options = mapping(value, "the options of a write")
    _require_known(options, ("unassigned", "timeout_ms"), "a write")
    unassigned = options.get("unassigned", "refuse")
    if unassigned not in ("refuse", "store"):
        refuse("unassigned", '"refuse" or "store"', unassigned)
    timeout_ms = _timeout_ms(options, timeout_ms_max)
    return WriteOptions("store" if unassigned == "store" else "refuse", timeout_ms)


def read_wait_options(value: object = None, timeout_ms_max: int = INT32_MAX) -> int | None:
    """Return the time-out of `wait_ready` in ms, *timeout_ms_max* at most; `None` without one."""
    if value is None:
        return None
    options = mapping(value, "the options of a wait")
    _require_known(options, ("timeout_ms",), "a wait")
    return _timeout_ms(options, timeout_ms_max)


def _timeout_ms(options: Mapping[object, object], most: int) -> int | None:
    """Cut, not refused: clients of version 1 may send any, and ask again after a wait."""
    value = options.get("timeout_ms")
    return None if value is None else min(uint31(value, "timeout_ms"), most)


def _require_known(options: Mapping[object, object], known: tuple[str, ...], what: str) -> None:
    for name in options:
        if name not in known:
            shown = f"{name!a:.80}"
            msg = f"{shown} is no option of {what}, known are {', '.join(known)}"
            raise InvalidArgument(msg)
