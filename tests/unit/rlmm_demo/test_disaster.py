"""The audit passes only if it names all planted faults and no others."""

from __future__ import annotations

import pytest

from rlmm_demo.screens.disaster import _names

HEAD = "Dirty: 30 objects\nfindings, the worst first:\n"


@pytest.mark.parametrize(
    ("found", "is_right"),
    [
        ("  warning TIER-ORPHAN (1): objects\n    payments-0: segment a: nobody's\n", True),
        ("  warning TIER-ORPHAN (1): objects\n    clicks-0: segment a: nobody's\n", False),
        ("  warning TIER-ORPHAN (2): objects\n    payments-0: segment a\n    clicks-0: b\n", False),
        ("  warning TIER-UNREFERENCED (1): objects\n    payments-0: segment a\n", False),
        ("", False),
    ],
    ids=["planted", "another", "both", "not-proved", "nothing"],
)
def test_audit_when_it_names_an_orphan_then_it_has_to_be_the_planted_one(
    found: str, is_right: bool
) -> None:
    """The check fails for any orphan but the planted one."""
    assert _names(HEAD + found) is is_right
