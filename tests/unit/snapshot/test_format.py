"""The header of a snapshot: writing and refusals."""

from __future__ import annotations

import io
import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import google_crc32c
import pytest

from rlmm.errors import InvalidArgument, SnapshotCorrupt, SnapshotUnsupported
from rlmm.log.protocol import LogIdentity
from rlmm.log.replay_progress import ReplayHistory
from rlmm.metadata.ids import INT64_MAX, Uuid
from rlmm.records.header import BatchMark
from rlmm.snapshot.format import HEADER_BYTES_MIN, SnapshotHeader, decode_header, encode_header
from tests.support.engine.snapshots import HISTORY, IDENTITY

if TYPE_CHECKING:
    from collections.abc import Callable

HEADER = SnapshotHeader(IDENTITY, 3, 5_000, HISTORY, 12, 1_700_000_000_000)
POSITION_AT, COUNT_AT, HISTORY_AT, CLUSTER_AT = 20, 16, 36, 138
LONG_HISTORY = ReplayHistory(
    INT64_MAX,
    INT64_MAX,
    INT64_MAX,
    INT64_MAX,
    INT64_MAX,
    INT64_MAX,
    BatchMark(3, 9, 2, 0xFFFFFFFF),
    INT64_MAX,
)


def taking(content: bytes) -> Callable[[int, str], bytes]:
    stream = io.BytesIO(content)

    def take(size: int, what: str) -> bytes:
        data = stream.read(size)
        if len(data) != size:
            raise SnapshotCorrupt(what)
        return data

    return take


def patched(at: int, new: bytes) -> bytes:
    content = bytearray(encode_header(HEADER)[:-4])
    content[at : at + len(new)] = new
    return bytes(content) + struct.pack(">I", google_crc32c.value(bytes(content)))


@pytest.mark.parametrize(
    "header",
    [
        HEADER,
        replace(HEADER, position=0, user_partitions=0, partition=0, written_ms=0),
        replace(HEADER, position=INT64_MAX - 1, partition=49),
        replace(HEADER, identity=LogIdentity("", Uuid(bytes(16)), 50)),
        replace(HEADER, identity=LogIdentity("\u00e9\u4e2d" * 6_000, IDENTITY.topic_id, 50)),
        replace(HEADER, history=LONG_HISTORY),
        replace(HEADER, history=ReplayHistory(1, 2, 3, 4, 5, 6)),
    ],
    ids=["usual", "smallest", "largest", "nameless", "long name", "long history", "history"],
)
def test_f13_header_when_written_then_is_read_back(header: SnapshotHeader) -> None:
    """Every field of the header reads back, with every count of the history."""
    assert decode_header(taking(encode_header(header))) == header


@pytest.mark.parametrize(
    ("at", "new", "named"),
    [
        *(
            pytest.param(POSITION_AT, struct.pack(">q", at), f"position {at}", id=f"f9: {at}")
            for at in (-1, -2, -(2**63), INT64_MAX)
        ),
        pytest.param(COUNT_AT, struct.pack(">i", 0), "0 partitions", id="no partitions"),
        pytest.param(COUNT_AT, struct.pack(">i", 3), "partition 3 of 3", id="beyond the count"),
        pytest.param(COUNT_AT - 4, struct.pack(">i", -1), "partition -1", id="negative partition"),
        pytest.param(HISTORY_AT, struct.pack(">q", -1), "history", id="negative history"),
        pytest.param(HISTORY_AT + 40, struct.pack(">q", -1), "history", id="last of the history"),
        pytest.param(28, struct.pack(">q", -1), "written", id="negative time"),
        pytest.param(108, struct.pack(">q", -1), "history", id="negative accepted"),
        pytest.param(116, struct.pack(">i", -1), "user partitions", id="negative number"),
        pytest.param(136, struct.pack(">H", 32_768), "32768", id="cluster id too long"),
        pytest.param(CLUSTER_AT, b"\xff", "UTF-8", id="cluster id no text"),
        pytest.param(0, b"X", "no snapshot", id="magic"),
    ],
)
def test_f9_header_when_a_field_cannot_be_then_is_corrupt(at: int, new: bytes, named: str) -> None:
    """The reader refuses an impossible field by name, even with a right checksum."""
    with pytest.raises(SnapshotCorrupt, match=named):
        decode_header(taking(patched(at, new)))


@pytest.mark.parametrize("at", [8, 10], ids=["file", "images"])
@pytest.mark.parametrize("version", [0, 4, 65_535], ids=str)
def test_f11_f12_header_of_an_unknown_version_then_is_unsupported(at: int, version: int) -> None:
    """Another version of the file, or of the images in it, is never guessed at."""
    with pytest.raises(SnapshotUnsupported, match=f"version {version}"):
        decode_header(taking(patched(at, struct.pack(">H", version))))


def test_header_when_no_shard_can_be_like_that_then_is_not_written() -> None:
    """The writer refuses a header that the reader would refuse."""
    for header in (
        replace(HEADER, position=INT64_MAX),
        replace(HEADER, position=-1),
        replace(HEADER, partition=50),
        replace(HEADER, identity=LogIdentity("x" * 32_768, IDENTITY.topic_id, 50)),
        replace(HEADER, history=ReplayHistory(-1)),
        replace(HEADER, user_partitions=-1),
    ):
        with pytest.raises(InvalidArgument, match="no snapshot can be written"):
            encode_header(header)


def test_header_without_a_cluster_id_is_the_shortest() -> None:
    """The limits of the format are those of its tables."""
    header = replace(HEADER, identity=LogIdentity("", Uuid(bytes(16)), 50))
    assert len(encode_header(header)) == HEADER_BYTES_MIN + 32 == 142
