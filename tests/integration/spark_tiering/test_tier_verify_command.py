"""`rlmm tier verify` as people and programs meet it, and on Spark."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.metadata.encoding import encode
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.state_sources.settings import SourceSettings
from spark_tiering.execution.in_process import InProcess
from spark_tiering.execution.opening import engine_over
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.rebuild.document import entry_of
from tests.support.cli.tier_command import Command, forget_environment, trees
from tests.support.logs.copied_folders import append_raw, place_of_event
from tests.support.server.memory_service import ServedMetadata
from tests.support.stores.encrypted_segments import IDS, KeyFiles
from tests.support.stores.segment_objects import put_set, whole_segment
from tests.support.tier.job_folders import ORDERS, PLACES, TierPlace
from tests.support.tier.verified_tiers import DEEP, Stored, copied_place, stored, told, verify

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> TierPlace:
    place = TierPlace(tmp_path_factory.mktemp("copied"))
    assert place.run().is_fine
    return place


@pytest.fixture
def tier(copied: TierPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    forget_environment(monkeypatch, tmp_path)
    return Command(copied_place(copied, tmp_path / "tier"))


def call(tier: Command, *more: str, code: int = 0) -> Result:
    flags = ("--embedded", str(tier.place.archive), "--no-spark")
    result = tier("verify", *flags, *tier.store, *more)
    assert result.exit_code == code, result.output
    return result


def document(result: Result) -> Any:
    found = json.loads(result.stdout)
    assert result.exit_code == (0 if found["isFine"] else 1), result.output
    return found


def test_command_when_nothing_is_wrong_then_says_so_and_changes_nothing(tier: Command) -> None:
    """A clean verify prints its figures and changes no byte of log and store."""
    before = trees(tier.place)
    result = call(tier, "--deep")
    assert "nothing found" in result.stdout
    assert "4 of 4 segments in 2 partitions, 12 objects, 20 requests" in result.stdout
    assert "5000000 requests for a million segments" in result.stdout
    assert trees(tier.place) == before


def test_command_when_an_object_is_gone_then_names_it(tier: Command, tmp_path: Path) -> None:
    """A missing object is named with a remedy and its offsets, with exit code 1."""
    one = stored(tier.place)
    one.put(ObjectKind.LOG, None)
    result = call(tier, code=1)
    for text in (
        "error TIER-OBJECT-MISSING (1): an object of a finished segment is not there",
        f"orders-3: segment {one.segment.id.uuid}, offsets 0 to 119: log: there is no such object",
        "fix: bring the object back",
        "lost: orders-3, offsets 0-119",
        "1 findings",
    ):
        assert text in result.stdout
    kept = tmp_path / "report.json"
    found = document(call(tier, "--output", "json", "--report", str(kept), code=1))
    assert json.loads(kept.read_text()) == found
    assert found["format"] == "rlmm-tier-verify"
    assert found["counts"] == {"TIER-OBJECT-MISSING": 1}
    (lost,) = found["lost"]
    assert lost == {
        "topic": "orders",
        "topicId": str(ORDERS.topic_id),
        "partition": 3,
        "offsets": [[0, 119]],
    }
    (finding,) = found["findings"]
    assert finding["fields"]["lost"] == [[0, 119]]
    assert finding["fields"]["key"] == one.keys[ObjectKind.LOG]
    call(tier, "--report", str(kept), code=2)  # a report is never overwritten


def test_command_when_topics_are_named_then_looks_at_these(tier: Command) -> None:
    """Verify looks at the topics that match the given pattern."""
    stored(tier.place).put(ObjectKind.LOG, None)
    call(tier, "--topic", "pay*")
    call(tier, "--without-topic", "orders")
    call(tier, "--topic", "orders", code=1)


def test_command_when_segments_are_sealed_then_takes_a_ring(tier: Command, tmp_path: Path) -> None:
    """Sizes are judged without a key ring, and parts that it could not read are named."""
    for at in range(4):
        stored(tier.place, at).seal(IDS[0])
    call(tier)
    closed = call(tier, "--deep", code=1)
    assert "TIER-OBJECT-ENCRYPTED" in closed.stdout
    assert "--key-ring" in closed.stdout
    keys = KeyFiles(tmp_path / "keys")
    opened = document(call(tier, "--deep", "--key-ring", str(keys.ring), "--output", "json"))
    assert opened["isFine"]
    assert opened["segmentsOpenedByKeyRing"] == 4
    keys.ring.chmod(0o644)
    refused = call(tier, "--deep", "--key-ring", str(keys.ring), code=2)
    assert "every user of the machine" in refused.output


@pytest.mark.parametrize(
    ("flags", "exit_code", "text"),
    [
        (("--sample", "x"), 2, "500 segments or 2% of them"),
        (("--sample", "0"), 2, "sample"),
        (("--sample", "101%"), 2, "sample"),
        (("--seed", "1"), 2, "--sample"),
        (("--after", "nonsense"), 2, "no place to go on behind"),
        (("--max-requests", "0"), 2, "max-requests"),
        (("--key-ring", "nowhere.json"), 2, "nowhere.json"),
        (("--store", "/nowhere/at/all"), 3, "/nowhere/at"),
    ],
)
def test_wrong_flags(tier: Command, flags: tuple[str, ...], exit_code: int, text: str) -> None:
    """Wrong flags give one line and no stack trace."""
    result = call(tier, *flags, code=exit_code)
    assert text in result.output
    assert "Traceback" not in result.output


def test_command_when_its_budget_is_used_up_then_tells_where_to_go_on(tier: Command) -> None:
    """A verify at the end of its budget prints where the next run starts, which accepts it."""
    first = call(tier, "--max-requests", "6", code=1)
    assert "stopped: the budget of requests is used up: 6" in first.stdout
    assert "2 of 4 segments in 2 partitions, 6 objects, 6 requests" in first.stdout
    none = document(call(tier, "--max-requests", "1", "--output", "json", code=1))
    assert (none["segments"], none["stopped"]) == (0, "the budget of requests is used up: 1")
    (line,) = [one for one in first.stdout.splitlines() if one.startswith("to go on: ")]
    rest = document(call(tier, *line.split()[3:], "--output", "json"))
    assert rest["segments"] == 2
    assert rest["isFine"]


def test_command_when_a_sample_is_drawn_then_its_seed_draws_it_again(tier: Command) -> None:
    """The seed in the report draws the same sample again."""
    first = document(call(tier, "--sample", "50%", "--output", "json"))
    seed = first["sample"]["seed"]
    again = document(call(tier, "--sample", "50%", "--seed", str(seed), "--output", "json"))
    assert again["sample"] == first["sample"]
    assert again["segments"] == first["segments"]
    two = document(call(tier, "--sample", "2", "--output", "json"))
    assert two["segments"] == 2


def test_metadata_when_it_is_in_copied_folders_then_the_same_is_found(tier: Command) -> None:
    """A copied folder of the log gives the same findings as the service."""
    stored(tier.place).put(ObjectKind.LOG, None)
    flags = ("--log-dirs", str(tier.place.archive / "log"), "--no-spark", "--deep")
    result = tier("verify", *flags, *tier.store)
    assert result.exit_code == 1, result.output
    assert "lost: orders-3, offsets 0-119" in result.stdout


def test_metadata_when_a_service_has_it_then_is_asked_again_at_the_end(tmp_path: Path) -> None:
    """Verify asks the service again before it reports, and counts meanwhile deleted segments."""
    with ServedMetadata() as served:
        place = TierPlace(tmp_path, metadata=served.access)
        assert place.run().is_fine
        source = SourceSettings(sidecar=served.address, timeout_s=5.0)
        asked: dict[str, Any] = {"embedded": None, "source": source}
        assert verify(place, DEEP, **asked).is_fine
        gone, lost = stored(place, 1), stored(place, 2)
        for one in (gone, lost):
            one.put(ObjectKind.MANIFEST, None)

        class Meanwhile(InProcess):
            def run_units(self, *arguments: Any) -> Any:
                gone.say_in_metadata(SegmentState.DELETE_SEGMENT_STARTED)
                return super().run_units(*arguments)

        report = verify(place, engine=Meanwhile(), **asked)
        assert report.gone == 1
        assert [one.fields["segment_id"] for one in report.findings] == [str(lost.segment.id.uuid)]


def test_tier_when_looked_at_on_spark_then_the_same_is_found(
    spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verify on Spark finds the same as in one process."""
    monkeypatch.setattr("spark_tiering.maintenance.verify.segment_choice.SEGMENTS_MAX", 1)
    place = TierPlace(tmp_path)
    assert place.run().is_fine
    stored(place, 0).put(ObjectKind.LOG, None)
    stored(place, 2).flip(ObjectKind.LOG, 300)
    keys = KeyFiles(tmp_path / "keys")
    stored(place, 3).seal(IDS[1])
    options = replace(DEEP, key_ring=keys.settings)
    here = verify(place, options)
    on_spark = verify(place, options, engine=engine_over(spark_session))
    assert told(on_spark) == told(here)
    assert on_spark.work == here.work
    assert on_spark.work.opened == 1
    assert on_spark.lost == here.lost


def many(place: TierPlace, count: int) -> list[SegmentMetadata]:
    made = []
    values: dict[int, list[bytes]] = {}
    for at in range(count):
        number, part = divmod(at, len(place.partitions))
        first, partition = 10 * number, place.partitions[part]
        segment = whole_segment(at + 1, first, first + 9, partition=partition)
        put_set(place.folder / "store", segment, prefix=place.prefix)
        made.append(segment)
        start, finish = entry_of(segment)
        values.setdefault(place_of_event(segment, PLACES), []).extend(
            (encode(start), encode(finish))
        )
    for number, those in values.items():
        for at in range(0, len(those), 1000):
            asyncio.run(append_raw(place.archive / "log", number, *those[at : at + 1000]))
    return made


@pytest.mark.parametrize("count", [2_000, pytest.param(20_000, marks=pytest.mark.long)])
def test_tier_of_many_segments_then_every_fault_is_found(tmp_path: Path, count: int) -> None:
    """Verify of many segments finds every planted fault with three requests for each segment."""
    place = TierPlace(tmp_path)
    made = many(place, count)
    assert verify(place).is_fine
    broken = made[::1000]
    for segment in broken:
        Stored(place, segment).put(ObjectKind.INDEXES, None)
    report = verify(place)
    assert report.counts == {"TIER-OBJECT-MISSING": len(broken)}
    assert report.work.segments == count
    assert report.work.requests == 3 * count
    assert {one.fields["segment_id"] for one in report.findings} == {
        str(one.id.uuid) for one in broken
    }


def test_command_when_the_archive_is_absent_then_is_refused(tier: Command, tmp_path: Path) -> None:
    """A mistyped archive folder is refused instead of reported as whole."""
    archive = tier.place.archive
    for folder, hint in ((tmp_path / "nowhere", ""), (archive / "log", f"it lies in {archive}")):
        for command in (["verify"], ["audit"], ["expire", "--retention-ms", "0", "--apply"]):
            result = tier(*command, "--embedded", str(folder), "--no-spark", *tier.store)
            assert result.exit_code == 2, result.output
            assert "there is no embedded log" in result.stderr
            assert hint in result.stderr
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "command",
    [("verify",), ("audit",), ("expire", "--retention-ms", "0"),
     ("expire", "--retention-ms", "0", "--apply")],
    ids=" ".join,
)  # fmt: skip
def test_mistyped_topic_is_named_as_unknown(tier: Command, command: tuple[str, ...]) -> None:
    """A mistyped topic is reported as unknown by every command that takes topics."""
    flags = ("--embedded", str(tier.place.archive), "--no-spark", *tier.store)
    result = tier(*command, *flags, "--topic", "ordres", "--topic", "pay*")
    assert result.exit_code == 0, result.output
    assert "note: the metadata knows no topic ordres" in result.stdout
    assert "pay*" not in result.stdout
