"""Which bytes a header `Range` asks for."""

from __future__ import annotations

import pytest

from rlmm.broker_files.byte_ranges import bytes_asked

SIZE = 100


@pytest.mark.parametrize(
    ("header", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=0-99", 0, 100),
        ("bytes=0-100", 0, 100),
        ("bytes=10-19", 10, 20),
        ("bytes=99-", 99, 100),
        ("bytes=0-", 0, 100),
        ("bytes=-1", 99, 100),
        ("bytes=-100", 0, 100),
        ("bytes=-9999999999999999999", 0, 100),
        (" bytes=5 - 6 ", 5, 7),
    ],
)
def test_range_when_in_the_file_then_is_that_part(header: str, start: int, end: int) -> None:
    """A range beyond the end of the file ends at its end."""
    asked = bytes_asked(header, SIZE)
    assert asked is not None
    assert asked == (start, end, True)
    assert asked.content_range(SIZE) == f"bytes {start}-{end - 1}/100"


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=100-200", "bytes=-0"])
def test_range_when_it_lies_outside_then_cannot_be_answered(header: str) -> None:
    """A range outside the file cannot be answered."""
    assert bytes_asked(header, SIZE) is None


def test_range_when_the_file_is_empty_then_cannot_be_answered() -> None:
    """An empty file has no first byte; all of it is nothing."""
    assert bytes_asked("bytes=0-", 0) is None
    assert bytes_asked("bytes=-5", 0) is None
    assert bytes_asked(None, 0) == (0, 0, False)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "bytes=",
        "bytes=-",
        "bytes=5-4",
        "bytes=1-2,4-5",
        "bytes=a-b",
        "bytes=-1-2",
        "bytes=1",
        "bytes=0x1-2",
        "lines=1-2",
        "bytes=1-99999999999999999999",
        "bytes=1-٢",
    ],
)
def test_range_when_it_is_not_understood_then_is_passed_over(header: str | None) -> None:
    """A range that HTTP does not define is ignored, and the whole file is the answer."""
    assert bytes_asked(header, SIZE) == (0, SIZE, False)
