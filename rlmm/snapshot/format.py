"""
The format of a snapshot file: byte tables, header, limits. Pure. `docs/snapshot-format.md`
describes it and changes with it, as does the version. Integers are big-endian. A file is a header,
blocks, and a trailer with a checksum over all before it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import google_crc32c

from rlmm.errors import InvalidArgument, SnapshotCorrupt, SnapshotUnsupported
from rlmm.log.protocol import LogIdentity
from rlmm.log.replay_progress import ReplayHistory
from rlmm.metadata.ids import INT32_MAX, INT64_MAX, Uuid
from rlmm.metadata.image import SHARD_VERSION
from rlmm.records.header import BatchMark

if TYPE_CHECKING:
    from collections.abc import Callable

MAGIC: Final = b"RLMMSNAP"
VERSION: Final = 2
IMAGE_VERSION: Final = SHARD_VERSION
"""Of the state images inside: a file whose images this build would misread is refused as well."""

START = struct.Struct(">8sHH")
"""Magic, version, image version: at this place in every version there will be."""
FIELDS = struct.Struct(">iiqq6qqqiIqi16sH")
"""
Metadata partition, partition count, position, time of writing, history, mark of the last batch,
accepted undecodable records, number of user partitions, topic id, length of the cluster id.
"""
FIELDS_1 = struct.Struct(">iiqq6qi16sH")
"""Those of version 1, which had neither mark nor accepted records."""
NO_MARK: Final = (-1, -1, -1, 0)
_COUNTS: Final = 6
_MARK: Final = 4
CRC = struct.Struct(">I")
CLUSTER_ID_BYTES_MAX: Final = 32_767
"""What Kafka's string form can carry."""
HEADER_BYTES_MIN: Final = START.size + FIELDS_1.size + CRC.size
HEADER_BYTES_MAX: Final = START.size + FIELDS.size + CRC.size + CLUSTER_ID_BYTES_MAX

BLOCK = struct.Struct(">BII")
"""Kind, bytes when inflated, bytes that follow."""
KIND_END, KIND_STORED, KIND_ZSTD = 0, 1, 2
BLOCK_BYTES_MAX: Final = 1024 * 1024
"""Most that a block inflates to, and so the most that a reader allocates by what a block says."""
INFLATION_MAX: Final = 64
"""A block that would shrink further is stored as it is, so no file unfolds into more than this."""
LENGTH = struct.Struct(">I")
"""In front of each image, in what the blocks inflate to."""
IMAGE_BYTES_MAX: Final = INT32_MAX
"""Longest image of one user partition; about twenty million segments."""

TRAILER = struct.Struct(">BIQ")
"""`KIND_END`, number of blocks, bytes that they inflate to."""
DIGEST_BYTES: Final = 32
"""SHA-256 of every byte before it; the file ends there."""
FILE_BYTES_MIN: Final = HEADER_BYTES_MIN + TRAILER.size + DIGEST_BYTES


@dataclass(frozen=True, slots=True)
class SnapshotHeader:
    identity: LogIdentity
    partition: int
    position: int
    """Next offset to apply: the state holds the effect of every record below it, and no other."""
    history: ReplayHistory
    user_partitions: int
    written_ms: int
    """When it was written, by the wall clock of who wrote it; nothing is decided by it."""


def encode_header(header: SnapshotHeader) -> bytes:
    """Return the first bytes of the file; `InvalidArgument` for a header that no shard can have."""
    fault = fault_of(header)
    if fault is not None:
        msg = f"no snapshot can be written: {fault}"
        raise InvalidArgument(msg)
    cluster_id = header.identity.cluster_id.encode()
    history = header.history
    fields = FIELDS.pack(
        header.partition,
        header.identity.partition_count,
        header.position,
        header.written_ms,
        history.first_offset,
        history.records,
        history.undecodable,
        history.counted_apart,
        history.without_base,
        history.trimmed_before,
        *(history.last_batch or NO_MARK),
        history.accepted,
        header.user_partitions,
        header.identity.topic_id,
        len(cluster_id),
    )
    covered = START.pack(MAGIC, VERSION, IMAGE_VERSION) + fields + cluster_id
    return covered + CRC.pack(google_crc32c.value(covered))


def decode_header(take: Callable[[int, str], bytes]) -> SnapshotHeader:
    """
    Read the header, and no more, through *take*, which gives the next bytes. Raises
    `SnapshotUnsupported` for another version, and `SnapshotCorrupt` for any other header that
    `encode_header` does not write.
    """
    start = take(START.size, "the header's start")
    magic, version, image_version = START.unpack(start)
    if magic != MAGIC:
        msg = f"no snapshot: it begins with {magic!r}"
        raise SnapshotCorrupt(msg)
    form = {1: FIELDS_1, VERSION: FIELDS}.get(version)
    if form is None or image_version != IMAGE_VERSION:
        msg = (
            f"version {version} with images of version {image_version}; this build reads versions "
            f"1 to {VERSION} with images of version {IMAGE_VERSION}"
        )
        raise SnapshotUnsupported(msg)
    fields = take(form.size, "the header")
    *numbers, user_partitions, topic_id, cluster_id_bytes = form.unpack(fields)
    if cluster_id_bytes > CLUSTER_ID_BYTES_MAX:
        msg = f"a cluster id of {cluster_id_bytes} bytes, the longest has {CLUSTER_ID_BYTES_MAX}"
        raise SnapshotCorrupt(msg)
    cluster_id = take(cluster_id_bytes, "the cluster id")
    crc: int = CRC.unpack(take(CRC.size, "the header's checksum"))[0]
    if crc != google_crc32c.value(start + fields + cluster_id):
        raise SnapshotCorrupt("the header is not what was written: its checksum differs")
    partition, partition_count, position, written_ms, *counts = numbers
    history = ReplayHistory(*counts[:_COUNTS])
    mark = tuple(counts[_COUNTS : _COUNTS + _MARK]) or NO_MARK
    history.last_batch = None if mark == NO_MARK else BatchMark(*mark)
    history.accepted = sum(counts[_COUNTS + _MARK :])
    try:
        identity = LogIdentity(cluster_id.decode(), Uuid(topic_id), partition_count)
    except UnicodeDecodeError as error:
        msg = f"the cluster id is not UTF-8: {cluster_id[:64]!r}"
        raise SnapshotCorrupt(msg) from error
    header = SnapshotHeader(identity, partition, position, history, user_partitions, written_ms)
    fault = fault_of(header)
    if fault is not None:
        raise SnapshotCorrupt(fault)
    return header


def fault_of(header: SnapshotHeader) -> str | None:
    """Return why no snapshot can have this header, in words; None where one can."""
    identity, history = header.identity, header.history
    if not 1 <= identity.partition_count <= INT32_MAX:
        return f"a topic of {identity.partition_count} partitions"
    if not 0 <= header.partition < identity.partition_count:
        return f"metadata partition {header.partition} of {identity.partition_count}"
    if not 0 <= header.position < INT64_MAX:
        return f"position {header.position}, no offset can be applied there"
    if len(identity.cluster_id.encode()) > CLUSTER_ID_BYTES_MAX:
        return f"a cluster id of {len(identity.cluster_id)} characters"
    if not 0 <= header.user_partitions <= INT32_MAX:
        return f"{header.user_partitions} user partitions"
    if not 0 <= header.written_ms <= INT64_MAX:
        return f"written at {header.written_ms} ms"
    counts = (
        history.first_offset,
        history.records,
        history.undecodable,
        history.counted_apart,
        history.without_base,
        history.trimmed_before,
        history.accepted,
    )
    if not all(0 <= count <= INT64_MAX for count in counts):
        return f"a history with numbers that cannot be: {history}"
    mark = history.last_batch
    if mark is not None and not 0 <= mark.base_offset <= mark.last_offset < INT64_MAX:
        return f"a last batch that cannot be: {mark}"
    return None
