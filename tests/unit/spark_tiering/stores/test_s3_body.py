"""A content as a request body: its uses by the client library, and bytes that never leave."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogUnavailable
from spark_tiering.stores.content import BytesContent
from spark_tiering.stores.results import ContentSum, PutRefusal
from spark_tiering.stores.s3_body import ContentSourceFailure, RequestBody

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = b"0123456789"


class Told:
    def __init__(self, told: ContentSum, *pieces: bytes | Exception) -> None:
        self.sum = told
        self._pieces = pieces

    def pieces(self) -> Iterator[bytes]:
        """Yield the pieces, or raise the error set in their place."""
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece


RIGHT = BytesContent(TEXT).sum


def drain(body: RequestBody) -> bytes:
    return b"".join(bytes(piece) for piece in iter(lambda: body.read(4), b""))


def test_body_when_measured_and_begun_anew_is_the_same_again() -> None:
    """A body gives the same bytes when it is measured, read and read again for a repeat."""
    body = RequestBody(Told(RIGHT, b"012", b"", b"3456789"))
    assert len(body) == 10
    for _ in range(2):
        assert body.seek(0, io.SEEK_END) == body.tell() == 10
        assert body.seek(0) == 0
        assert drain(body) == TEXT
        assert body.read(4) == b""
    body.seek(0)
    assert body.read() == TEXT


@pytest.mark.parametrize(
    "content",
    [
        Told(ContentSum(11, RIGHT.crc64nvme), TEXT),
        Told(ContentSum(9, RIGHT.crc64nvme), TEXT),
        Told(ContentSum(10, RIGHT.crc64nvme ^ 1), b"01234", b"56789"),
        Told(RIGHT, b"01234", OSError(5, "Input/output error")),
    ],
    ids=["short", "long", "other", "failing"],
)
def test_body_when_the_source_is_other_than_told_is_never_whole(content: Told) -> None:
    """A request ends before its last byte when the bytes differ from those announced."""
    body = RequestBody(content)
    with pytest.raises(ContentSourceFailure):
        drain(body)
    assert body.tell() < len(body)
    assert body.refused is not None
    assert body.refused.reason is PutRefusal.SOURCE
    assert body.error is None


def test_body_when_the_source_raises_its_own_error_keeps_it() -> None:
    """An error of the source other than about reading reaches the caller unchanged."""
    error = LogUnavailable("away")
    body = RequestBody(Told(RIGHT, b"01234", error))
    with pytest.raises(ContentSourceFailure):
        drain(body)
    assert body.error is error
    assert body.refused is None
