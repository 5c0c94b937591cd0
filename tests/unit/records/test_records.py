"""The records of a batch: both readers' values, and errors of ours for damage."""

from __future__ import annotations

import gc
import importlib

import pytest
from aiokafka.record import default_records

from rlmm.records import records
from rlmm.records.batch import Batch, walk
from rlmm.records.damage import DamagedRecords, DamageReason
from rlmm.records.records import BatchValues, Record
from tests.support.records.batches import field, forge, record, varint

PURE_PYTHON = vars(default_records)["_DefaultRecordBatchPy"]

GOOD = record(0, b"zero")


@pytest.fixture(params=["extension", "pure-python"], autouse=True)
def _reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pure-python":
        # Without the extension varints are Python's too; the compiled one takes any position.
        pure_varint = importlib.import_module("aiokafka.record.util").decode_varint_py
        monkeypatch.setattr(PURE_PYTHON._read_msg, "__defaults__", (pure_varint,))
        monkeypatch.setattr(records, "compiled_reader", lambda: PURE_PYTHON)


def batch_of(data: bytes) -> Batch:
    (batch,) = walk(data)
    assert isinstance(batch, Batch)
    return batch


def damage_of(data: bytes) -> DamagedRecords:
    batch = batch_of(data)
    damage = batch.values().damage
    assert damage is not None
    assert list(batch.records())[-1] == damage
    return damage


def test_records_when_everything_is_set_then_all_of_it_is_read() -> None:
    """The reader returns everything as written, and distinguishes empty from null."""
    headers = varint(3) + field(b"a") + field(b"1") + field(b"") + field(b"") + field(b"a")
    section = record(0, b"", key=b"", timestamp_delta=-5, headers=headers + field(None))
    section += record(1, None, timestamp_delta=2**40)
    assert list(batch_of(forge(section, 2, base_offset=9)).records()) == [
        Record(9, 995, b"", b"", (("a", b"1"), ("", b""), ("a", None))),
        Record(10, 1_000 + 2**40, None, None),
    ]


def test_values_when_read_then_count_and_pairs_agree() -> None:
    """The count of values equals the number of columns and pairs."""
    values = batch_of(forge(GOOD + record(1, None), 2, base_offset=9)).values()
    assert len(values) == 2
    assert list(values) == [(9, b"zero"), (10, None)]
    assert (values.offsets, values.values) == ([9, 10], [b"zero", None])
    assert values.damage is None


def test_values_when_a_field_is_negative_then_it_is_null() -> None:
    """Kafka takes any negative length for null, not only -1."""
    body = b"\x00\x00\x00" + varint(-7) + varint(-(2**40)) + b"\x00"
    batch = batch_of(forge(varint(len(body)) + body, 1))
    assert list(batch.records()) == [Record(0, 1_000, None, None)]


def test_records_when_a_header_key_is_no_utf8_then_nothing_is_lost() -> None:
    """The reader replaces invalid UTF-8 in a header key, as Kafka does, and keeps the record."""
    headers = varint(1) + field(b"\xffkey") + field(b"v")
    batch = batch_of(forge(record(0, b"x", headers=headers) + record(1, b"y"), 2))
    assert list(batch.values()) == [(0, b"x"), (1, b"y")]
    assert list(batch.records()) == [
        Record(0, 1_000, None, b"x", (("\ufffdkey", b"v"),)),
        Record(1, 1_000, None, b"y"),
    ]


def test_records_when_attributes_have_the_high_bit_then_they_are_one_byte() -> None:
    """The attributes of a record are one unused byte."""
    batch = batch_of(forge(record(0, b"x", attributes=b"\x80"), 1))
    assert list(batch.values()) == [(0, b"x")]
    assert list(batch.records()) == [Record(0, 1_000, None, b"x")]


@pytest.mark.parametrize("compiled_bytes_max", [0, 1_000], ids=["ours", "compiled"])
def test_records_when_times_overflow_then_they_wrap_as_in_kafka(
    compiled_bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times wrap at 64 bits as in Java."""
    monkeypatch.setattr(records, "COMPILED_BYTES_MAX", compiled_bytes_max)
    batch = batch_of(forge(record(0, b"x", timestamp_delta=2**62), 1, base_timestamp_ms=2**62))
    assert list(batch.records()) == [Record(0, -(2**63), None, b"x")]
    body = b"\x00" + b"\xff" * 9 + b"\x7f" + varint(0) + field(None) + field(b"x") + b"\x00"
    batch = batch_of(forge(varint(len(body)) + body, 1, base_timestamp_ms=0))
    assert list(batch.records()) == [Record(0, -(2**63), None, b"x")]


@pytest.mark.parametrize("compiled_bytes_max", [0, 1_000], ids=["ours", "compiled"])
def test_records_when_the_broker_stamped_them_then_all_have_its_time(
    compiled_bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With log append time every record has the batch's time."""
    monkeypatch.setattr(records, "COMPILED_BYTES_MAX", compiled_bytes_max)
    section = record(0, b"a") + record(1, b"b", timestamp_delta=7)
    batch = batch_of(forge(section, 2, attributes=0x08, max_timestamp_ms=99_000))
    assert [r.timestamp_ms for r in batch.records() if isinstance(r, Record)] == [99_000] * 2


@pytest.mark.parametrize(
    ("case", "second"),
    {
        "out-of-order-repeated": record(0, b"again"),
        "out-of-order-before-batch": record(-1, b"back"),
        "out-of-order-behind-batch": record(3, b"far"),
        "out-of-order-far-behind": record(2**62, b"far"),
        "missing": b"",
        "cut": record(1, b"cut")[:-1],
        "length-0": b"\x00" + record(1, b"x"),
        "length-neg": varint(-1) + record(1, b"x")[1:],
        "length-less": varint(6) + record(1, b"x")[1:],
        "length-more": varint(8) + record(1, b"x")[1:] + b"\x00",
        "header-count-neg": record(1, b"x", headers=varint(-1)),
        "header-count-huge": record(1, b"x", headers=varint(2**40)),
        "header-key-null": record(1, b"x", headers=varint(1) + field(None) + field(b"v")),
        "varint-endless": record(1, b"x", headers=b"\xff" * 10),
        "varint-too-long": record(1, b"x", headers=b"\x80" * 10 + b"\x00"),
        "field-and-record-lie-together": varint(15)
        + record(1, b"x", headers=varint(1) + field(b"k") + varint(5) + b"v")[1:],
    }.items(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_records_when_the_second_is_bad_then_the_first_is_kept(case: str, second: bytes) -> None:
    """Good records before the damage are kept, and the lost offsets begin behind them."""
    is_misplaced = case.startswith("out-of-order")
    reason = DamageReason.RECORD_OUT_OF_ORDER if is_misplaced else DamageReason.BAD_RECORD
    data = forge(GOOD + second, 2, base_offset=50, last_offset_delta=2)
    batch = batch_of(data)
    assert list(batch.values()) == [(50, b"zero")]
    first, damage = batch.records()
    assert first == Record(50, 1_000, None, b"zero")
    assert isinstance(damage, DamagedRecords)
    assert damage == damage_of(data)
    assert (damage.reason, damage.records_read) == (reason, 1)
    assert (damage.first_offset, damage.next_offset) == (51, 53)
    assert damage.detail.startswith("record 1 of 2: ")


def test_records_when_the_header_counts_too_few_then_what_is_left_over_is_named() -> None:
    """The counted records are good, and the bytes behind them are reported."""
    data = forge(GOOD + record(1, b"uncounted"), 1)
    assert list(batch_of(data).values()) == [(0, b"zero")]
    damage = damage_of(data)
    assert (damage.reason, damage.records_read) == (DamageReason.TRAILING_BYTES, 1)
    assert damage.first_offset == damage.next_offset == 1


def test_records_when_the_header_counts_too_many_then_those_that_are_there_are_good() -> None:
    """A record count is a claim: memory and work follow the bytes."""
    data = forge(GOOD, 2**31 - 1, last_offset_delta=0)
    assert list(batch_of(data).values()) == [(0, b"zero")]
    assert damage_of(data).reason is DamageReason.BAD_RECORD


def test_values_of_a_large_batch_then_have_no_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large batches are left to the reader that skips headers; it reads the same values."""

    def never(_: object) -> None:
        pytest.fail("the compiled reader was given a batch above its limit")

    headers = varint(50) + (field(b"k") + field(None)) * 50
    data = forge(record(0, bytes(64), headers=headers) + record(1, b"y"), 2)
    monkeypatch.setattr(records, "COMPILED_BYTES_MAX", len(data))
    expected = list(batch_of(data).values())
    monkeypatch.setattr(records, "COMPILED_BYTES_MAX", len(data) - 1)
    monkeypatch.setattr(records, "compiled_reader", lambda: never)
    batch = batch_of(data)
    assert list(batch.values()) == expected == [(0, bytes(64)), (1, b"y")]
    first = next(batch.records())
    assert isinstance(first, Record)
    assert first.headers == (("k", None),) * 50


def test_record_with_too_many_headers_then_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record with more headers than the limit is damaged."""
    monkeypatch.setattr(records, "COMPILED_BYTES_MAX", 0)
    monkeypatch.setattr(records, "RECORD_HEADERS_MAX", 3)
    three, four = (varint(n) + (field(b"k") + field(None)) * n for n in (3, 4))
    data = forge(record(0, b"x", headers=three) + record(1, b"y", headers=four), 2)
    damage = damage_of(data)
    assert (damage.reason, damage.records_read) == (DamageReason.BAD_RECORD, 1)


def test_values_when_kept_then_the_record_set_is_not_held() -> None:
    """Values are copies: holding one of them does not hold a whole fetch in memory."""
    values = batch_of(forge(GOOD, 1)).values()
    gc.collect()
    assert not any(isinstance(each, memoryview) for each in gc.get_referents(values))
    assert isinstance(values, BatchValues)
