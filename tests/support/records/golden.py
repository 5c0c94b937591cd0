"""Record values of `__remote_log_metadata` that Kafka made, with their events spelled out."""

from __future__ import annotations

from typing import NamedTuple

from rlmm.metadata.events import Event, SegmentSnapshot, SegmentUpdate
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from tests.support.builders import partition_delete, started, update

COPY_STARTED, COPY_FINISHED, DELETE_STARTED, DELETE_FINISHED = SegmentState

ORDERS = TopicIdPartition(Uuid.of(0, 0xCA), "orders", 7)
SEGMENT = SegmentId(ORDERS, Uuid.of(0, 0xFE))


class Golden(NamedTuple):
    name: str
    value: bytes
    event: Event


ALL: list[Golden] = []


def _golden(name: str, hexadecimal: str, event: Event) -> Golden:
    ALL.append(Golden(name, bytes.fromhex(hexadecimal), event))
    return ALL[-1]


def _update(custom_metadata: bytes | None) -> SegmentUpdate:
    return update(
        SEGMENT, COPY_FINISHED, broker_id=2, event_timestamp_ms=1, custom_metadata=custom_metadata
    )


_UPDATE_HEAD = (
    "010100" "076f7264657273" "000000000000000000000000000000ca" "00000007" "00"
    "000000000000000000000000000000fe" "00" "00000002" "0000000000000001"
)  # fmt: skip

# ------------------------------------------ written by Kafka's own serialiser (trunk, 2026-08-22)

ADD_WITH_CUSTOM = _golden(
    "add_with_custom",
    "010000"
    "07" "6f7264657273" "000000000000000000000000000000ca" "00000007" "00"
    "000000000000000000000000000000fe" "00"
    "0000000000000000" "0000000000000063" "0000002a" "0000000000000064" "000000000000007b"
    "03" "00000000" "0000000000000000" "00" "00000001" "0000000000000032" "00"
    "00001000" "05" "01020304" "00" "00",
    started(
        SEGMENT, 0, 99, ((0, 0), (1, 50)), broker_id=42, max_timestamp_ms=100,
        event_timestamp_ms=123, size_bytes=4096, custom_metadata=b"\x01\x02\x03\x04"
    ),
)  # fmt: skip

_golden(
    "add_txn_empty",
    "010000"
    "07" "6f7264657273" "000000000000000000000000000000ca" "00000007" "00"
    "000000000000000000000000000000fe" "00"
    "0000000000000000" "0000000000000063" "0000002a" "0000000000000064" "000000000000007b"
    "03" "00000000" "0000000000000000" "00" "00000001" "0000000000000032" "00"
    "00001000" "00" "00" "01" "00" "01" "01",
    started(
        SEGMENT, 0, 99, ((0, 0), (1, 50)), broker_id=42, max_timestamp_ms=100,
        event_timestamp_ms=123, size_bytes=4096, txn_index_empty=True
    ),
)  # fmt: skip

UPDATE_FINISH = _golden(
    "update_finish",
    "010100"
    "076f7264657273" "000000000000000000000000000000ca" "00000007" "00"
    "000000000000000000000000000000fe" "00"
    "0000002a" "00000000000001c8" "00" "01" "00",
    update(SEGMENT, COPY_FINISHED, broker_id=42, event_timestamp_ms=456),
)  # fmt: skip

_golden(
    "partition_delete_marked",
    "010200"
    "076f7264657273" "000000000000000000000000000000ca" "00000007" "00"
    "0000002a" "0000000000000315" "00" "00",
    partition_delete(
        PartitionDeleteState.DELETE_PARTITION_MARKED, ORDERS, broker_id=42, event_timestamp_ms=789
    ),
)  # fmt: skip

SEGMENT_MINIMAL = _golden(
    "seg_min",
    "010000076f7264657273000000000000000000000000000000ca000000070000000000000000000000000000"
    "0000fe000000000000000000000000000000000000000000ffffffffffffffff000000000000000002000000"
    "0000000000000000000000000000000000",
    started(SEGMENT, 0, 0, broker_id=0, size_bytes=0),
)

SEGMENT_THREE_EPOCHS = _golden(
    "seg_3epochs_custom_txn",
    "010000076f7264657273000000000000000000000000000000ca000000070000000000000000000000000000"
    "0000fe000000000000000000000000000000006400000001ffffffffffffffff000000000000007b04000000"
    "0000000000000000000000000001000000000000001400000000020000000000000050000000040005000102"
    "030001000101",
    started(
        SEGMENT,
        0,
        100,
        ((0, 0), (1, 20), (2, 80)),
        event_timestamp_ms=123,
        custom_metadata=b"\x00\x01\x02\x03",
        txn_index_empty=True,
    ),
)

_golden(
    "seg_custom_empty_state3",
    "010000076f7264657273000000000000000000000000000000ca000000070000000000000000000000000000"
    "0000fe000000000000000005000000000000000600000001ffffffffffffffff000000000000007b02000000"
    "0000000000000000000000000400010300",
    started(
        SEGMENT, 5, 6, ((0, 0),), event_timestamp_ms=123, custom_metadata=b"", state=DELETE_FINISHED
    ),
)

UPDATE_UNICODE_EXTREME = _golden(
    "upd_unicode_extreme",
    "0101000b74c3a9e282acf09f9880fffffffffffffffffffffffffffffffe7fffffff0080000000000000007f"
    "ffffffffffffff00ffffffff8000000000000000000200",
    update(
        SegmentId(
            TopicIdPartition(Uuid.of(-1, -2), "t\u00e9\u20ac\U0001f600", 2_147_483_647),
            Uuid.of(-(2**63), 2**63 - 1),
        ),
        DELETE_STARTED,
        broker_id=-1,
        event_timestamp_ms=-(2**63),
    ),
)

_golden(
    "upd_empty_custom",
    "010100076f7264657273000000000000000000000000000000ca000000070000000000000000000000000000"
    "0000fe00000000020000000000000001010100",
    _update(b""),
)

_golden("upd_custom_126", _UPDATE_HEAD + "7f" + 126 * "00" + "0100", _update(bytes(126)))
_golden("upd_custom_127", _UPDATE_HEAD + "8001" + 127 * "00" + "0100", _update(bytes(127)))
_golden("upd_custom_128", _UPDATE_HEAD + "8101" + 128 * "00" + "0100", _update(bytes(128)))

_golden(
    "pdel_finished",
    "010200076f7264657273000000000000000000000000000000ca00000007000000000200000000000000010200",
    partition_delete(
        PartitionDeleteState.DELETE_PARTITION_FINISHED, ORDERS, broker_id=2, event_timestamp_ms=1
    ),
)

# The name is ours; its length field and the size of the value are Kafka's. The same holds for the
# zero bytes in the three updates above.
_golden(
    "pdel_name249",
    "010200" "fa01" + 249 * "61" + "000000000000000000000000000000ca" "00000007" "00"
    "00000002" "0000000000000001" "02" "00",
    partition_delete(
        PartitionDeleteState.DELETE_PARTITION_FINISHED, TopicIdPartition(Uuid.of(0, 0xCA), 249 *
        "a", 7), broker_id=2, event_timestamp_ms=1
    ),
)  # fmt: skip

SNAPSHOT = _golden(
    "snapshot",
    "010300000000000000000000000000000000fe0000000000000000000000000000006400000001ffffffffff"
    "ffffff000000000000007b020000000000000000000000000000000400000100",
    SegmentSnapshot(
        Uuid.of(0, 0xFE), 0, 100, 1, -1, 123, ((0, 0),), 1024, None, COPY_FINISHED, False
    ),
)

_golden(
    "snapshot_txn",
    "010300000000000000000000000000000000fe0000000000000000000000000000006400000001ffffffffff"
    "ffffff000000000000007b02000000000000000000000000000000040002090101000101",
    SegmentSnapshot(
        Uuid.of(0, 0xFE), 0, 100, 1, -1, 123, ((0, 0),), 1024, b"\x09", COPY_FINISHED, True
    ),
)


# ---------------------- written by a real broker (4.3.1), read back from its metadata topic

_LIFE = SegmentId(
    TopicIdPartition(Uuid.parse("OjSKW9lMTN6VnyEIzEU0nA"), "orders", 0),
    Uuid.parse("7V870kP2RF2vkhemwSMxug"),
)


def _broker_update(event_timestamp_ms: int, state: SegmentState) -> SegmentUpdate:
    return SegmentUpdate(_LIFE, 1, event_timestamp_ms, None, state)


LIFE = (
    _golden(
        "broker_copy_started",
        "010000076f72646572733a348a5bd94c4cde959f2108cc45349c0000000000ed5f3bd243f6445daf9217a6c1"
        "2331ba000000000000000000000000000000001b00000001000001a1ee565e1b000001a1ee79237b02000000"
        "0000000000000000000000003f00000001000101",
        started(
            _LIFE,
            0,
            27,
            max_timestamp_ms=1_795_000_000_027,
            event_timestamp_ms=1_795_002_278_779,
            size_bytes=16_128,
            txn_index_empty=True,
        ),
    ),
    _golden(
        "broker_copy_finished",
        "010100076f72646572733a348a5bd94c4cde959f2108cc45349c0000000000ed5f3bd243f6445daf9217a6c1"
        "2331ba0000000001000001a1ee792404000100",
        _broker_update(1_795_002_278_916, COPY_FINISHED),
    ),
    _golden(
        "broker_delete_started",
        "010100076f72646572733a348a5bd94c4cde959f2108cc45349c0000000000ed5f3bd243f6445daf9217a6c1"
        "2331ba0000000001000001a1ee792c78000200",
        _broker_update(1_795_002_281_080, DELETE_STARTED),
    ),
    _golden(
        "broker_delete_finished",
        "010100076f72646572733a348a5bd94c4cde959f2108cc45349c0000000000ed5f3bd243f6445daf9217a6c1"
        "2331ba0000000001000001a1ee792cba000300",
        _broker_update(1_795_002_281_146, DELETE_FINISHED),
    ),
)
"""One segment's whole life, with a storage plugin that keeps no custom metadata."""

_golden(
    "broker_finished_with_custom",
    "010100076f7264657273e8c8dd5bcac0430cb846e5f9994b488d00000000002a5ef7f319e944b6ad2d30ad37"
    "aab0770000000001000001a1ee8411ed02010100",
    update(
        SegmentId(
            TopicIdPartition(Uuid.parse("6MjdW8rAQwy4RuX5mUtIjQ"), "orders", 0),
            Uuid.parse("Kl738xnpRLatLTCtN6qwdw"),
        ),
        COPY_FINISHED,
        event_timestamp_ms=1_795_002_995_181,
        custom_metadata=b"\x01",
    ),
)
