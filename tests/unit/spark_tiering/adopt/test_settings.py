"""Topic settings: refused, kept, changed and restored."""

from __future__ import annotations

import pytest

from spark_tiering.adopt.outcomes import AdoptionRefusal
from spark_tiering.adopt.settings import (
    ASKED,
    CHANGED,
    COPY_DISABLE,
    LOCAL_BYTES,
    LOCAL_MS,
    RETENTION_BYTES,
    RETENTION_MS,
    differences,
    enabling_change,
    explicitly_set,
    opening_change,
    restoring_change,
    shrinking,
    why_not,
)
from spark_tiering.segment_sources.cluster import TopicSettingInForce
from tests.support.tier.simulated_adoption import DEFAULTS


def told(**explicit: str) -> dict[str, TopicSettingInForce]:
    own = {name.replace("_", "."): value for name, value in explicit.items()}
    return {
        name: TopicSettingInForce(own.get(name, DEFAULTS[name]), name in own) for name in DEFAULTS
    }


def test_topic_when_it_is_an_ordinary_tiered_one_then_nothing_speaks_against_it() -> None:
    """An ordinary tiered topic has no obstacle."""
    assert why_not(told()) is None
    assert why_not(told(retention_ms="1000", cleanup_policy="delete")) is None


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (None, AdoptionRefusal.NO_SUCH_TOPIC),
        (told(remote_storage_enable="false"), AdoptionRefusal.NOT_TIERED),
        ({}, AdoptionRefusal.NOT_TIERED),
        (told(cleanup_policy="compact"), AdoptionRefusal.COMPACTED),
        (told(cleanup_policy="delete,compact"), AdoptionRefusal.COMPACTED),
        (told(remote_log_delete_on_disable="true"), AdoptionRefusal.DELETED_ON_DISABLE),
        (told(remote_log_copy_disable="true"), AdoptionRefusal.COPYING_DISABLED),
        (
            {name: one for name, one in told().items() if name != COPY_DISABLE},
            AdoptionRefusal.SETTING_UNKNOWN,
        ),
    ],
    ids=lambda one: one.value if isinstance(one, AdoptionRefusal) else "",
)
def test_topic_when_a_window_would_cost_records_then_refused_by_name(
    settings: dict[str, TopicSettingInForce] | None, reason: AdoptionRefusal
) -> None:
    """Each setting that would cost records in a window refuses the topic by name."""
    refused = why_not(settings)
    assert refused is not None
    assert refused.reason is reason


def test_journal_when_written_then_has_what_was_set_on_the_topic_alone() -> None:
    """The journal holds only settings made on the topic."""
    settings = told(retention_ms="5", local_retention_bytes="7", cleanup_policy="delete")
    assert explicitly_set(settings) == {RETENTION_MS: "5", LOCAL_BYTES: "7"}


def test_changes_when_put_together_then_give_back_exactly_what_was_there() -> None:
    """The changes restore each old topic setting and unset those that were not set."""
    before = {RETENTION_MS: "5", LOCAL_BYTES: "7"}
    opened = opening_change()
    assert set(opened.given) == set(CHANGED) <= set(ASKED)
    assert not opened.unset
    now = {**before, **opened.given}
    assert (now[COPY_DISABLE], now[RETENTION_MS], now[RETENTION_BYTES]) == ("true", "-1", "-1")
    assert (now[LOCAL_MS], now[LOCAL_BYTES]) == ("-2", "-2")
    for change in (enabling_change(before), restoring_change(before)):
        assert not set(change.given) & set(change.unset)
        now = {name: value for name, value in now.items() if name not in change.unset}
        now.update(change.given)
    assert now == before


def test_retention_when_copying_begins_again_then_is_still_off() -> None:
    """Retention stays off when copying is on again, until a change of its own."""
    change = enabling_change({RETENTION_MS: "5", RETENTION_BYTES: "6"})
    assert not {RETENTION_MS, RETENTION_BYTES} & {*change.given, *change.unset}


def test_settings_when_not_as_before_then_each_difference_is_named() -> None:
    """Each setting that differs from before is named."""
    before = {RETENTION_MS: "5"}
    assert differences(told(retention_ms="5"), before) == []
    assert differences(told(retention_ms="6", local_retention_ms="1"), before) == [
        "local.retention.ms is 1, it was not set",
        "retention.ms is 6, it was 5",
    ]


@pytest.mark.parametrize(
    ("now", "before", "lowered"),
    [
        ({"retention_ms": "-1"}, {RETENTION_MS: "-1"}, []),
        ({"retention_ms": "-1"}, {RETENTION_MS: "1"}, ["retention.ms is -1, it would be 1"]),
        ({"retention_ms": "-1"}, {}, ["retention.ms is -1, it would be unset"]),
        ({"retention_ms": "5"}, {RETENTION_MS: "5"}, []),
        ({"retention_ms": "5"}, {RETENTION_MS: "6"}, []),
        ({"retention_ms": "5"}, {RETENTION_MS: "4"}, ["retention.ms is 5, it would be 4"]),
        ({"retention_ms": "5"}, {RETENTION_MS: "x"}, ["retention.ms is 5, it would be x"]),
        ({}, {}, []),
        (
            {"retention_ms": "5", "local_retention_ms": "-2"},
            {RETENTION_MS: "5", LOCAL_MS: "1"},
            ["local.retention.ms is -2, it would be 1"],
        ),
        (
            {"retention_ms": "5", "local_retention_ms": "1"},
            {RETENTION_MS: "5", LOCAL_MS: "-2"},
            [],
        ),
        (
            {"retention_bytes": "9"},
            {RETENTION_BYTES: "8"},
            ["retention.bytes is 9, it would be 8"],
        ),
    ],
)
def test_limits_when_a_journal_would_lower_them_then_each_is_named_with_both_values(
    now: dict[str, str], before: dict[str, str], lowered: list[str]
) -> None:
    """A limit that is lowered, unset or no number is named with its value now and then."""
    assert shrinking(told(**now), before) == lowered
