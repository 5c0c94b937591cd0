"""Records that the demonstration produces, and the checksum that judges every read. Pure."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

TOPIC: Final = "clicks"
PARTITIONS: Final = 3
CODECS: Final = ("gzip", "lz4", "zstd")
SEGMENT_BYTES: Final = 3 << 20
_COMMITTED, _ABORTED = 22_000, 2_000


@dataclass(frozen=True, slots=True)
class RecordPortion:
    partition: int
    codec: str
    values: Sequence[bytes]
    is_aborted: bool = False


def portions() -> list[RecordPortion]:
    """Return each codec in each partition, in order, and one aborted transaction."""
    chance = random.Random(1)  # noqa: S311  # the same records in every run
    found = [
        RecordPortion(partition, codec, [_value(chance, partition) for _ in range(_COMMITTED)])
        for codec in CODECS
        for partition in range(PARTITIONS)
    ]
    aborted = [_value(chance, 0) for _ in range(_ABORTED)]
    found.insert(PARTITIONS, RecordPortion(0, CODECS[0], aborted, is_aborted=True))
    return found


def _value(chance: random.Random, partition: int) -> bytes:
    return b'{"shop": %d, "session": "%s", "page": %d}' % (
        partition,
        chance.randbytes(128).hex().encode(),
        chance.randrange(1_000),
    )


class Checksum:
    """A digest of records with partition and offset; each partition's records come in order."""

    def __init__(self) -> None:
        self._digests: dict[int, hashlib._Hash] = {}
        self.records = 0

    def add(self, partition: int, offset: int, value: bytes) -> None:
        digest = self._digests.setdefault(partition, hashlib.sha256())
        digest.update(b"%d %d " % (offset, len(value)))
        digest.update(value)
        self.records += 1

    @property
    def text(self) -> str:
        whole = hashlib.sha256()
        for partition, digest in sorted(self._digests.items()):
            whole.update(b"%d " % partition + digest.digest())
        return whole.hexdigest()[:16]


def checksum_of(rows: Iterable[tuple[int, int, bytes]]) -> Checksum:
    checksum = Checksum()
    for partition, offset, value in rows:
        checksum.add(partition, offset, value)
    return checksum


def committed_rows(
    sent: Sequence[RecordPortion], offsets: Sequence[Sequence[int]]
) -> Iterator[tuple[int, int, bytes]]:
    """Give the rows of a reader of committed records, sorted by partition and offset."""
    rows = [
        (portion.partition, offset, value)
        for portion, placed in zip(sent, offsets, strict=True)
        if not portion.is_aborted
        for offset, value in zip(placed, portion.values, strict=True)
    ]
    yield from sorted(rows)
