"""The fuzzer: a short run finds nothing, and a planted fault is found and can be repeated."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlmm.metadata import python_shard
from rlmm.metadata.decoding import decode
from rlmm.metadata.fast_decoding import cut
from rlmm.metadata.native_partitions import verdict_of
from rlmm.metadata.partition_state import PartitionState
from rlmm.metadata.verdicts import APPLIED, Undecodable, UndecodableReason
from rlmm.records.damage import DamageReason
from tests.support.engine.chosen import needs_native
from tests.support.fuzzing import cases, fuzz
from tests.support.repository import tree

if TYPE_CHECKING:
    from rlmm.metadata.events import Event
    from rlmm.metadata.verdicts import Verdict


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(fuzz.main, ["--workers", "1", *arguments])
    return done.exit_code, done.output


@pytest.mark.parametrize(
    ("workers", "count"),
    [("1", "5000"), pytest.param("2", "100000", marks=pytest.mark.long)],
    ids=["short", "long"],
)
def test_readers_when_fed_damaged_bytes_never_crash(workers: str, count: str) -> None:
    """Readers of damaged inputs, in one process or two, return values and break no rule."""
    code, output = run("--workers", workers, "--count", count, "--seed", "7")
    assert code == 0, output
    assert "0 crashes" in output
    for kind in fuzz.KINDS["all"]:
        assert f"cases: {kind}" in output
    for reached in ("decoded: SegmentMetadata", "events applied", "image accepted", "walk: batch"):
        assert reached in output


@needs_native
@pytest.mark.parametrize(
    ("workers", "count"),
    [
        ("1", "5000"),
        pytest.param("2", "500000", marks=[pytest.mark.long, pytest.mark.timeout(3_600)]),
    ],
    ids=["short", "long"],
)
def test_both_engines_when_fed_damaged_bytes_say_the_same(workers: str, count: str) -> None:
    """The native core and the reference engine differ in no report, answer or image."""
    code, output = run("--workers", workers, "--count", count, "--seed", "9", "--of", "both")
    assert code == 0, output
    for reached in ("events applied", "damage", "asked", "image taken", "image refused"):
        assert f"both: {reached}" in output


@needs_native
def test_difference_when_planted_between_the_engines_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A verdict, an answer or an image of one engine that the other does not give is a crash."""
    from rlmm.metadata import native_shard  # noqa: PLC0415 - it may not be built

    def without_remarks(number: int) -> Verdict:
        return verdict_of(number & 0xFF if number & 0xFF == 0 else number)

    monkeypatch.setattr(native_shard, "verdict_of", without_remarks)
    code, output = run("--count", "2000", "--seed", "5", "--of", "both")
    assert code == 1
    assert "AssertionError: report: entries is" in output
    assert "--of both" in output
    monkeypatch.undo()
    monkeypatch.setattr(native_shard.NativeShard, "epoch_view", lambda *_: None)
    code, output = run("--count", "2000", "--seed", "5", "--of", "both")
    assert code == 1
    assert "differs: None, should be EpochLookup" in output


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_native_core_under_the_address_sanitizer_when_fed_damaged_bytes_breaks_nothing() -> None:
    """No overflow, no panic, no access beside what was allocated, and every rule kept."""
    done = subprocess.run(
        ["sh", "tools/fuzz_native.sh", "1000000", "7"],
        cwd=tree.ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 77 and "CI" not in os.environ:
        pytest.skip(done.stderr.splitlines()[-1])  # the tool chain that lacks
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"seed (7): Reached", done.stdout) == ["7", "7"]


def test_crash_when_planted_is_found_and_repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that raises for rare bytes is caught; seed and group give the same input again."""

    def decode_with_a_fault(value: bytes | None) -> Event | Undecodable:
        if value and value[-1] == 0xFE:
            raise IndexError("planted")
        return decode(value)

    monkeypatch.setattr(cases, "decode", decode_with_a_fault)
    code, output = run("--count", "6000", "--seed", "3")
    assert code == 1
    assert "IndexError: planted" in output
    crash = next(line for line in output.splitlines() if line.startswith("crash: values"))
    assert crash.endswith("fe")
    again = next(line for line in output.splitlines() if line.startswith("again: "))
    code, repeated = run(*again.split("tests.support.fuzzing.fuzz ")[1].split())
    assert code == 1
    assert crash in repeated


def test_cut_when_it_disagrees_with_decode_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fast way that reads one field wrongly breaks a rule, in values and in shards."""

    def cut_with_a_fault(value: bytes) -> object:
        parts = cut(value)
        return parts if parts is None or len(parts) == 3 else (*parts[:4], b"\x02!")

    monkeypatch.setattr(cases, "cut", cut_with_a_fault)
    code, output = run("--count", "2000", "--seed", "5")
    assert code == 1
    assert "cut and decode disagree" in output
    monkeypatch.setattr(cases, "cut", cut)
    monkeypatch.setattr(python_shard, "cut", cut_with_a_fault)
    code, output = run("--count", "2000", "--seed", "5")
    assert code == 1
    assert "crash: events" in output


@pytest.mark.breaks_shards
def test_state_when_an_event_is_half_applied_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker rejects the state that a handler leaves when it forgets derived fields."""

    def add_without_counting(state: PartitionState, uuid: bytes, row: bytes) -> Verdict:
        verdict = sound(state, uuid, row)
        if verdict is APPLIED:
            state.size_bytes += 1
        return verdict

    sound = PartitionState.add
    monkeypatch.setattr(PartitionState, "add", add_without_counting)
    code, output = run("--count", "2000", "--seed", "5")
    assert code == 1
    assert "validate()" in output


def test_values_when_damaged_reach_every_reason_to_refuse_one() -> None:
    """The damaged values reach every reason to refuse one."""
    case = cases.Case(Counter())
    cases.values(Random(1), case, 20_000)
    from_elsewhere = {
        UndecodableReason.TOMBSTONE,
        UndecodableReason.DAMAGED_BATCH,
        UndecodableReason.OVERSIZED,
    }
    reached = {what.removeprefix("undecodable: ") for what in case.counts}
    assert set(UndecodableReason) - from_elsewhere <= reached


def test_record_sets_when_damaged_reach_damage_inside_sealed_batches() -> None:
    """Damaged record sets with a right CRC reach the record readers and the decompressors."""
    case = cases.Case(Counter())
    cases.record_sets(Random(1), case, 1500)
    reached = {what.partition(": ")[2] for what in case.counts}
    assert {
        DamageReason.BAD_RECORD,
        DamageReason.BAD_COMPRESSION,
        DamageReason.RECORD_OUT_OF_ORDER,
        DamageReason.TRAILING_BYTES,
        DamageReason.UNKNOWN_COMPRESSION,
        DamageReason.BAD_OFFSETS,
        DamageReason.BAD_RECORD_COUNT,
    } <= reached
