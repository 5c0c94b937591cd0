"""Digests: the known sums, and the same however the bytes are cut."""

from __future__ import annotations

import hashlib

import pytest

from spark_tiering.layout.digests import (
    StreamDigest,
    continued_crc64nvme,
    crc64nvme_of_parts,
    crc64nvme_text,
    digest_of,
    parse_crc64nvme,
)

CHECK = b"123456789"
CHECK_CRC = 0xAE8B14860A799888
"""The check value of CRC-64/NVME in the catalogues."""


def test_digest_of_the_check_text_when_asked_is_the_known_one() -> None:
    """The digest of the check text is the known value in the stores' form."""
    digest = digest_of(CHECK)
    assert digest == (9, hashlib.sha256(CHECK).digest(), CHECK_CRC)
    assert digest.crc64nvme_text == "rosUhgp5mIg="
    assert digest_of(b"").crc64nvme == 0


def test_digest_when_bytes_come_in_pieces_is_that_of_the_whole() -> None:
    """A digest does not depend on the pieces of its source."""
    stream = StreamDigest()
    for piece in (CHECK[:1], b"", memoryview(CHECK)[1:5], CHECK[5:]):
        stream.add(piece)
    assert stream.digest() == digest_of(CHECK)


def test_sums_of_parts_when_joined_are_the_sum_of_the_whole() -> None:
    """The joined checksums of parts equal the checksum of the whole object."""
    parts = [CHECK[:2], b"", CHECK[2:3], CHECK[3:]]
    sums = [(digest_of(part).crc64nvme, len(part)) for part in parts]
    assert crc64nvme_of_parts(sums) == CHECK_CRC
    assert crc64nvme_of_parts([]) == 0
    assert continued_crc64nvme(continued_crc64nvme(0, CHECK[:5]), CHECK[5:]) == CHECK_CRC


@pytest.mark.parametrize("text", ["", "rosUhgp5mI", "rosUhgp5mA==", "r sUhgp5mIg=", "é" * 12])
def test_sum_that_is_none_when_parsed_is_nothing(text: str) -> None:
    """A store's checksum in another form counts as no checksum."""
    assert parse_crc64nvme(text) is None
    assert parse_crc64nvme(crc64nvme_text(CHECK_CRC)) == CHECK_CRC
