"""A plan in a few lines."""

from __future__ import annotations

import pytest

from spark_tiering.copy_plan.document import fingerprint
from spark_tiering.copy_plan.summary import LINES_OF_EACH_MAX, size_text, summary
from tests.support.builders import tp
from tests.support.tier.copy_plans import cut, example_plan, plan_of, source


def test_summary_when_read_then_says_what_is_done_and_what_is_not_and_why() -> None:
    """The summary has a line for each total, topic, reason, gap and open copy."""
    plan = example_plan()
    lines = summary(plan).splitlines()
    assert lines[0] == f"plan {fingerprint(plan)[:16]}: archive, made 2023-11-14 22:13:20 UTC"
    assert lines[1].startswith(
        "  4 to copy, 1 to complete, 1 open copies to end (4.3 KiB); 0 there"
    )
    assert "  in all 4.3 KiB, 12 objects, at most 32 requests" in lines
    assert "  logs: 2 to copy (2.1 KiB); 0 there already, 0 left out (0 B)" in lines
    assert "  left out, topic-not-wanted: 1 segments, 1000 B" in lines
    assert "  gap: orders-0 lacks 0 to 49, below the oldest copy" in lines
    assert any(line.startswith("  stays open: orders-0 0 to 89, not-ours: ") for line in lines)


def test_summary_when_there_is_much_then_stays_short() -> None:
    """A summary of many topics and gaps counts those beyond the first ones."""
    partitions = [tp(f"topic-{number:03}", 0) for number in range(100)]
    plan = plan_of([source(cut(5, 10), partition=one) for one in partitions])
    lines = summary(plan).splitlines()
    assert len(lines) == 3 + 2 * (LINES_OF_EACH_MAX + 1)
    assert "  ... and 80 more topics" in lines
    assert "  ... and 80 more gaps" in lines


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**31, "2.0 GiB"), (2**63, "8.0 EiB")],
)
def test_sizes_when_shown_then_have_the_unit_that_people_use(size_bytes: int, text: str) -> None:
    """Sizes are shown in powers of 1024."""
    assert size_text(size_bytes) == text
