"""
Settings of a topic in a window: refusals, the journalled part, and the changes of its steps. Pure.
A setting that was not set on the topic is unset again, so that it follows the broker's default.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from spark_tiering.adopt.outcomes import AdoptionRefusal, RefusedTopic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_tiering.segment_sources.cluster import TopicSettingInForce

TIERED: Final = "remote.storage.enable"
CLEANUP: Final = "cleanup.policy"
DELETE_ON_DISABLE: Final = "remote.log.delete.on.disable"
COPY_DISABLE: Final = "remote.log.copy.disable"
RETENTION_MS: Final = "retention.ms"
RETENTION_BYTES: Final = "retention.bytes"
LOCAL_MS: Final = "local.retention.ms"
LOCAL_BYTES: Final = "local.retention.bytes"

CHANGED: Final = (COPY_DISABLE, LOCAL_MS, LOCAL_BYTES, RETENTION_MS, RETENTION_BYTES)
"""What a window changes, and a journal keeps."""
ASKED: Final = (TIERED, CLEANUP, DELETE_ON_DISABLE, *CHANGED)

_AS_RETENTION = "-2"
"""Brokers refuse to stop copying unless what they keep locally is all that they keep."""
_FOR_EVER = "-1"


_RETENTION_OF: Final = {LOCAL_MS: RETENTION_MS, LOCAL_BYTES: RETENTION_BYTES}
_LIMITS: Final = (RETENTION_MS, RETENTION_BYTES, LOCAL_MS, LOCAL_BYTES)


class SettingsChange(NamedTuple):
    """Requests a change from the cluster, which makes all of it, or nothing."""

    given: Mapping[str, str]
    unset: tuple[str, ...] = ()


def why_not(settings: Mapping[str, TopicSettingInForce] | None) -> RefusedTopic | None:
    if settings is None:
        return RefusedTopic(AdoptionRefusal.NO_SUCH_TOPIC, "the cluster does not tell us of it")
    if _value(settings, TIERED) != "true":
        return RefusedTopic(AdoptionRefusal.NOT_TIERED, f"{TIERED} is not true")
    if "compact" in _value(settings, CLEANUP):
        return RefusedTopic(AdoptionRefusal.COMPACTED, f"{CLEANUP} is {_value(settings, CLEANUP)}")
    for name in CHANGED:
        if name not in settings:
            return RefusedTopic(AdoptionRefusal.SETTING_UNKNOWN, f"the brokers know no {name}")
    if _value(settings, DELETE_ON_DISABLE) == "true":
        return RefusedTopic(AdoptionRefusal.DELETED_ON_DISABLE, f"{DELETE_ON_DISABLE} is true")
    if is_copying_disabled(settings):
        detail = f"{COPY_DISABLE} is true, and no journal of ours says why"
        return RefusedTopic(AdoptionRefusal.COPYING_DISABLED, detail)
    return None


def is_copying_disabled(settings: Mapping[str, TopicSettingInForce]) -> bool:
    return _value(settings, COPY_DISABLE) == "true"


def explicitly_set(settings: Mapping[str, TopicSettingInForce]) -> dict[str, str]:
    """Return the settings of `CHANGED` that are set on the topic itself."""
    return {
        name: setting.value
        for name in CHANGED
        if (setting := settings.get(name)) is not None
        and setting.is_explicit
        and setting.value is not None
    }


def opening_change() -> SettingsChange:
    """Step 2: stop copying, and let nothing expire, by age or by size counted twice."""
    return SettingsChange(
        {
            COPY_DISABLE: "true",
            LOCAL_MS: _AS_RETENTION,
            LOCAL_BYTES: _AS_RETENTION,
            RETENTION_BYTES: _FOR_EVER,
            RETENTION_MS: _FOR_EVER,
        }
    )


def enabling_change(before: Mapping[str, str]) -> SettingsChange:
    """Step 7: let copying go on, with local retention as it was."""
    return _as_before(before, (COPY_DISABLE, LOCAL_MS, LOCAL_BYTES))


def restoring_change(before: Mapping[str, str]) -> SettingsChange:
    """Restore retention: step 8 of an adoption."""
    return _as_before(before, (RETENTION_MS, RETENTION_BYTES))


def shrinking(settings: Mapping[str, TopicSettingInForce], before: Mapping[str, str]) -> list[str]:
    """
    Return the limits of retention in force that *before* would lower, each with both values. A
    limit that *before* does not set is the broker's default, which may be lower.
    """
    now = {name: _value(settings, name) for name in _LIMITS}
    return [
        f"{name} is {now[name] or 'not set'}, it would be {before.get(name, 'unset')}"
        for name in _LIMITS
        if _is_lowered(name, settings, now, before)
    ]


def _is_lowered(
    name: str,
    settings: Mapping[str, TopicSettingInForce],
    now: Mapping[str, str],
    before: Mapping[str, str],
) -> bool:
    if name not in before:
        setting = settings.get(name)
        return setting is not None and setting.is_explicit
    return _limit(name, before) < _limit(name, now)


def _limit(name: str, values: Mapping[str, str]) -> float:
    """Return the limit, the lowest one for a text that is no number."""
    value = values.get(name, "")
    if value == _AS_RETENTION and name in _RETENTION_OF:
        return _limit(_RETENTION_OF[name], values)
    if value == _FOR_EVER:
        return math.inf
    return int(value) if value.isascii() and value.isdigit() else -math.inf


def differences(
    settings: Mapping[str, TopicSettingInForce], before: Mapping[str, str]
) -> list[str]:
    now = explicitly_set(settings)
    return [
        f"{name} is {now.get(name, 'not set')}, it was {before.get(name, 'not set')}"
        for name in CHANGED
        if now.get(name) != before.get(name)
    ]


def _as_before(before: Mapping[str, str], names: tuple[str, ...]) -> SettingsChange:
    return SettingsChange(
        {name: before[name] for name in names if name in before},
        tuple(name for name in names if name not in before),
    )


def _value(settings: Mapping[str, TopicSettingInForce], name: str) -> str:
    found = settings.get(name)
    return "" if found is None or found.value is None else found.value
