"""The report at the end of a job."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from msgspec import structs

from rlmm.metadata.ids import Uuid
from spark_tiering.copy_job.report import CopyFate, CopyReceipt, EndReceipt, JobReport
from spark_tiering.copy_plan.reasons import SegmentAction
from spark_tiering.layout.strict_json import HexBytes
from spark_tiering.reporting.report import LINES_MAX
from tests.support.builders import tp

DONE = CopyReceipt(
    tp().topic, tp().topic_id, 7, Uuid.of(7, 1), 0, 99, CopyFate.FINISHED,
    action=SegmentAction.COPY, log_bytes=2_000_000, stored_bytes=2_000_500, requests=6,
    seconds=0.25, offset=12, crc64nvme=HexBytes((255).to_bytes(8)),
)  # fmt: skip
ENDING = EndReceipt(
    tp().topic, tp().topic_id, 7, Uuid.of(7, 3), 0, 9, CopyFate.ENDING, "covered", "no answer"
)
OPEN = structs.replace(
    DONE, uuid=Uuid.of(7, 2), start_offset=100, last_offset=199, fate=CopyFate.LEFT_OPEN,
    why="store-failed", detail="store-unavailable:\n no answer", log_bytes=0, offset=None,
    crc64nvme=None,
)  # fmt: skip
REPORT = JobReport("job-1", "f" * 64, "archive", 1_000, 3_000, (DONE,))


def test_report_when_all_is_finished_then_is_fine_and_says_how_fast() -> None:
    """A report with all copies finished is fine and shows the rate."""
    assert REPORT.is_fine
    assert list(REPORT.lines()) == [
        "job job-1: 1 of 1 segments finished, 1.9 MiB in 2 s (1.0 MB/s)"
    ]


@pytest.mark.parametrize(
    "report",
    [
        replace(REPORT, receipts=(DONE, OPEN)),
        replace(REPORT, stopped="paused"),
        replace(REPORT, ends=(ENDING,)),
    ],
    ids=["open", "stopped", "ending"],
)
def test_report_when_something_is_left_then_is_not_fine_and_names_it(report: JobReport) -> None:
    """A report with planned copies left is not fine and names them."""
    assert not report.is_fine
    assert len(list(report.lines())) > 1


def test_report_when_much_is_left_then_lines_are_few_and_without_breaks() -> None:
    """A report with many leftovers shows the first ones, each on a single line."""
    report = replace(REPORT, receipts=(OPEN,) * (LINES_MAX + 5))
    lines = list(report.lines())
    assert lines[-1] == "  ... and 5 more"
    assert (
        f"  left-open: {tp().topic}-7 100-199, store-failed: store-unavailable: no answer: "
        in (lines[2])
    )
    assert not any("\n" in line for line in lines)


def test_document_when_made_is_json_with_every_receipt() -> None:
    """The JSON document holds every receipt, and its totals add up."""
    document = json.loads(json.dumps(replace(REPORT, receipts=(DONE, OPEN)).document()))
    assert document["segments"] == {"finished": 1, "left-open": 1}
    assert document["logBytes"] == 2_000_000
    assert document["storedBytes"] == 4_001_000
    first, second = document["copies"]
    assert first["crc64nvme"] == "00000000000000ff"
    assert (first["offset"], second["offset"]) == (12, None)
    assert second["why"] == "store-failed"
