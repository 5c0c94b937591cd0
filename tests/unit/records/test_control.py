"""The contents of control records."""

from __future__ import annotations

import pytest

from rlmm.records.batch import Batch, walk
from rlmm.records.control import ControlType, control_key, control_type
from rlmm.records.records import Record
from rlmm.records.writer import Producer, build_control_batch

ABORT_MARKER = bytes.fromhex(
    "00000000000000fa" "00000042" "00000004" "02" "778202ea" "0030" "00000000"
    "0000018bcfe68140" "0000018bcfe68140" "0000000000000fa1" "0001" "ffffffff" "00000001"
    "20" "00" "00" "00"  # record of 16 bytes: attributes, two deltas
    "08" "0000" "0000"  # key of 4 bytes: version 0, type 0
    "0c" "0000" "00000007"  # value of 6 bytes: version 0, coordinator epoch 7
    "00"
)  # fmt: skip
"""The abort marker of producer 4001, as a broker wrote it at offset 250."""


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param(b"\x00\x00\x00\x00", ControlType.ABORT, id="abort"),
        pytest.param(b"\x00\x00\x00\x01", ControlType.COMMIT, id="commit"),
        pytest.param(b"\x00\x07\x00\x01", ControlType.COMMIT, id="later-version"),
        pytest.param(b"\x00\x00\x00\x01\x09", ControlType.COMMIT, id="longer-key"),
        pytest.param(b"\x00\x00\x00\x02", ControlType.OTHER, id="leader-change"),
        pytest.param(b"\x00\x00\xff\xff", ControlType.OTHER, id="unknown"),
        pytest.param(b"\xff\xff\x00\x01", ControlType.OTHER, id="negative-version"),
        pytest.param(b"\x00\x00\x01", ControlType.OTHER, id="short"),
        pytest.param(None, ControlType.OTHER, id="null"),
    ],
)
def test_control_type_when_given_a_key_then_names_the_kind(
    key: bytes | None, expected: ControlType
) -> None:
    """The kind is the second number of the key, and an unreadable key is another kind."""
    assert control_type(key) is expected


def test_control_type_when_read_from_a_brokers_marker_then_is_abort() -> None:
    """The whole way, from a broker's bytes to the kind."""
    (batch,) = walk(ABORT_MARKER)
    assert isinstance(batch, Batch)
    assert batch.is_control
    assert batch.is_transactional
    (found,) = batch.records()
    assert isinstance(found, Record)
    assert control_type(found.key) is ControlType.ABORT


def test_control_batch_when_written_then_is_the_brokers_byte_for_byte() -> None:
    """Our marker and the broker's are the same 78 bytes."""
    assert (
        build_control_batch(
            ControlType.ABORT,
            250,
            producer=Producer(4001, 1, is_transactional=True),
            timestamp_ms=0x18BCFE68140,
            leader_epoch=4,
            coordinator_epoch=7,
        )
        == ABORT_MARKER
    )


def test_control_key_when_made_then_names_its_kind() -> None:
    """The reader tells commit keys from abort keys."""
    for kind in (ControlType.ABORT, ControlType.COMMIT):
        assert control_type(control_key(kind)) is kind
