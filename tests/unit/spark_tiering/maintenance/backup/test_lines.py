"""A backup as lines and as values; nothing is believed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rlmm.log.protocol import LogIdentity
from rlmm.metadata.encoding import encode
from rlmm.metadata.ids import Uuid
from spark_tiering.maintenance.backup.rows import (
    BackupDigest,
    BackupExtent,
    BackupHeader,
    BackupOrder,
    BackupRow,
    LostOffsets,
    event_of,
    parse_row,
    row_fields,
)
from spark_tiering.maintenance.json_lines import LineFault, parse_line
from tests.support.builders import started

HEADER = BackupHeader(
    LogIdentity("cluster", Uuid(bytes(16)), 3),
    {0: BackupExtent(0, 9), 2: BackupExtent(5, 7)},
    {1: "its disk is gone"},
)
EVENT = BackupRow(0, 3, 77, None, encode(started("a")))
ODD = BackupRow(2, 5, -1, b"key", None, (("h", b"\xff"), ("h", None)))
LOST = LostOffsets(2, 6, 7, "bad crc")


def test_event_when_people_read_it_then_says_what_the_record_says() -> None:
    """Events have the names of `rlmm events`, and unreadable ones their reason."""
    told = event_of(EVENT)
    assert (told["kind"], told["state"], told["topic"]) == (
        "segment", "COPY_SEGMENT_STARTED", "orders",
    )  # fmt: skip
    assert set(event_of(BackupRow(0, 0, 0, None, b"junk"))) == {"undecodable", "detail"}


def test_digest_when_anything_differs_then_is_another() -> None:
    """The digest differs for other places, times, order, or null instead of empty."""

    def of(*rows: BackupRow | LostOffsets) -> str:
        digest = BackupDigest()
        for row in rows:
            digest.add(row)
        return digest.footer.sha256

    changed = [
        of(EVENT, ODD), of(ODD, EVENT), of(EVENT), of(replace(EVENT, timestamp_ms=78), ODD),
        of(replace(EVENT, key=b""), ODD), of(EVENT, replace(ODD, value=b"")),
        of(EVENT, replace(ODD, headers=ODD.headers[:1])), of(EVENT, LOST),
        of(replace(EVENT, offset=4), ODD), of(replace(EVENT, place=1), ODD),
    ]  # fmt: skip
    assert len(set(changed)) == len(changed)


def test_row_when_a_text_is_no_utf8_then_is_refused() -> None:
    """A header's name that is no UTF-8 is refused; recorded lines show the other faults."""
    with pytest.raises(LineFault):
        parse_row(row_fields(ODD) | {"headers": [["\ud800", None]]})


@pytest.mark.parametrize("line", [b"{}", b"[]\n", b"{,}\n", b"\xff\n", b"[" * 99_999 + b"\n"])
def test_line_when_it_is_no_object_then_is_refused(line: bytes) -> None:
    """A line that is no JSON object, as a cut one, is refused."""
    with pytest.raises(LineFault):
        parse_line(line)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([EVENT, EVENT], id="twice"),
        pytest.param([ODD, EVENT], id="partition behind"),
        pytest.param([BackupRow(1, 0, 0, None, b"")], id="partition that was missing"),
        pytest.param([BackupRow(0, 9, 0, None, b"")], id="behind the end"),
        pytest.param([BackupRow(2, 4, 0, None, b"")], id="before the start"),
        pytest.param([LostOffsets(2, 6, 8, "")], id="lost beyond the end"),
        pytest.param([LostOffsets(2, 6, 6, "")], id="nothing lost"),
        pytest.param([replace(EVENT, timestamp_ms=-2)], id="no time"),
    ],
)
def test_order_when_rows_cannot_be_so_then_the_last_is_wrong(
    rows: list[BackupRow | LostOffsets],
) -> None:
    """Rows out of order or bounds are refused at the first such row."""
    order = BackupOrder(HEADER)
    assert [bool(order.wrong(row)) for row in rows] == [False] * (len(rows) - 1) + [True]
    fine = BackupOrder(HEADER)
    assert not any(fine.wrong(row) for row in (EVENT, ODD, LOST))
