"""Settings of reading and writing: impossible values are refused before any I/O."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from rlmm.errors import ConfigError
from rlmm.gate.settings import GateSettings
from rlmm.pump.settings import PumpSettings, WriteSettings

SECTIONS: dict[str, type[Any]] = {
    "pump": PumpSettings,
    "write": WriteSettings,
    "gate": GateSettings,
}
WHOLE = [
    (section, field.name)
    for section, kind in SECTIONS.items()
    for field in fields(kind)
    if field.type == "int"
]
MEANINGLESS = [0, -1, 2**31, 1.5, float("inf"), float("nan"), True, "5", None]


def test_settings_then_are_whole_numbers_but_one() -> None:
    """The table below knows every key; only the share of undecodable records is no whole number."""
    keys = {(section, field.name) for section, kind in SECTIONS.items() for field in fields(kind)}
    assert keys - set(WHOLE) == {("pump", "undecodable_share_max")}


@pytest.mark.parametrize("value", MEANINGLESS, ids=repr)
@pytest.mark.parametrize(("section", "name"), WHOLE)
def test_f97_number_of_no_meaning_is_refused_by_key(section: str, name: str, value: object) -> None:
    """Zero, negative, infinite, fractional and beyond 32 bits: each is refused, naming the key."""
    with pytest.raises(ConfigError, match=rf"^{section}\.{name} must be a whole number"):
        SECTIONS[section](**{name: value})


@pytest.mark.parametrize(
    ("section", "given", "names"),
    [
        *(
            ("pump", {"undecodable_share_max": share}, "pump.undecodable_share_max must be a num")
            for share in (-0.1, 1.1, float("inf"), float("nan"), True)
        ),
        ("pump", {"retry_first_ms": 500, "retry_last_ms": 400}, "pump.retry_last_ms must not be"),
        (
            *("gate", {"retry_after_ms": 2_000, "retry_after_ms_max": 1_000}),
            "gate.retry_after_ms_max must not be",
        ),
    ],
    ids=str,
)
def test_f97_share_or_limits_when_they_mean_nothing_then_are_refused_by_key(
    section: str, given: dict[str, Any], names: str
) -> None:
    """A share outside 0 to 1, and limits that contradict each other, are refused by key."""
    with pytest.raises(ConfigError, match=f"^{names}"):
        SECTIONS[section](**given)


@pytest.mark.parametrize("share", [0, 1, 0.5], ids=repr)
def test_share_when_it_lies_between_0_and_1_then_is_taken(share: float) -> None:
    """The settings accept a share of 0 and of 1."""
    assert PumpSettings(undecodable_share_max=share).undecodable_share_max == share
