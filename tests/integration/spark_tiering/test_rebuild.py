"""Metadata made anew from the objects of a tier, and rebuilt events published."""

from __future__ import annotations

import json
import re
import shutil
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from rlmm.cli.main import cli
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.rebuild.decision import RebuildFate
from spark_tiering.maintenance.rebuild.document import entry_of
from spark_tiering.maintenance.rebuild.rebuild import RebuildOptions, rebuild
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.reporting.progress import Meter
from spark_tiering.stores.local_settings import LocalSettings
from tests.support.builders import delete_finished, delete_started, partition_delete
from tests.support.server.memory_service import ServedMetadata
from tests.support.stores.segment_objects import put_set, whole_segment
from tests.support.tier.job_folders import TierPlace
from tests.support.tier.lost_tiers import (
    LOGS,
    ORDERS,
    Lost,
    answers_in,
    answers_of,
    counted,
    store_partition_delete,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.metadata.segment import SegmentMetadata


MARKED = PartitionDeleteState.DELETE_PARTITION_MARKED


pytestmark = pytest.mark.usefixtures("bare_environment")


def test_rebuild_when_the_metadata_is_lost_then_answers_are_as_before(tmp_path: Path) -> None:
    """A rebuild of two partitions answers every look-up as before the log was lost."""
    place = TierPlace(tmp_path)
    place.run()
    lost = Lost(tmp_path)
    before = answers_in(lost.archive)
    shutil.rmtree(lost.archive)
    saved = lost.save("--custom-metadata", "remote-size")
    assert saved.exit_code == 1, saved.output
    assert "error TIER-METADATA-LOST" in saved.stdout
    assert "  orders-3 segment" in saved.stdout
    assert "8 events are in" in saved.stdout
    assert not lost.archive.exists()
    tried = lost.apply("--dry-run")
    assert (tried.exit_code, lost.archive.exists()) == (0, False)
    assert re.search("4 segments of .* would be published", tried.stdout, re.DOTALL)
    applied = lost.apply()
    assert applied.exit_code == 0, applied.output
    assert answers_in(lost.archive) == before
    assert len(before.listed) == 4
    again = lost.apply()
    assert (again.exit_code, "4  are there already" in again.stdout) == (0, True)
    assert counted(lost.compare("--custom-metadata", "remote-size")) == {"equal": 4}
    saved, applied = lost.save("--custom-metadata", "remote-size"), lost.apply()
    assert (saved.exit_code, "events.jsonl has no event" in saved.stdout) == (0, True)
    assert (applied.exit_code, "0 segments of" in applied.stdout) == (0, True)


def test_rebuild_when_two_brokers_copied_the_same_then_finds_the_later(lost: Lost) -> None:
    """Of two brokers' copies of one range the rebuild makes the later one found, as before."""
    older = whole_segment("older", 0, 99, partition=ORDERS, broker_id=1, event_timestamp_ms=1)
    newer = whole_segment("newer", 0, 99, partition=ORDERS, broker_id=2, event_timestamp_ms=2)
    beside = whole_segment("beside", 0, 99, partition=LOGS)
    lost.put(newer, older, beside)
    saved = lost.save().stdout
    assert "TIER-EXTENT-OVERLAP (1)" in saved
    assert "  orders-0 segment" in saved
    assert lost.apply().exit_code == 0
    with open_tier(CareRequest(embedded=lost.archive)) as tier:
        shard = tier.moment().state(ORDERS)
        assert len(shard.segments(ORDERS)) == 2
        assert shard.segment_for(ORDERS, 0, 50) == newer


def test_f121_sets_that_are_not_whole_are_named_and_never_invented(lost: Lost) -> None:
    """Incomplete or foreign sets are named, and no segment is invented."""
    segments = {
        name: whole_segment(name, 100 * number, 100 * number + 99)
        for number, name in enumerate(("fine", "none", "nolog", "cut", "moved", "junk", "mute"))
    }
    put_set(lost.store, segments["fine"])
    put_set(lost.store, segments["none"], kinds=(ObjectKind.LOG, ObjectKind.INDEXES))
    put_set(lost.store, segments["nolog"], kinds=(ObjectKind.INDEXES, ObjectKind.MANIFEST))
    put_set(lost.store, segments["cut"])[ObjectKind.LOG].write_bytes(b"short")
    moved = put_set(lost.store, segments["moved"])[ObjectKind.MANIFEST]
    other = put_set(lost.folder / "other", whole_segment("elsewhere", 400, 499))
    moved.write_bytes(other[ObjectKind.MANIFEST].read_bytes())
    put_set(lost.store, segments["junk"])[ObjectKind.MANIFEST].write_bytes(b"{\xff")
    mute = put_set(lost.store, segments["mute"])[ObjectKind.MANIFEST]
    document = json.loads(mute.read_bytes())
    del document["remoteLogSegmentMetadata"]
    mute.write_bytes(json.dumps(document).encode())
    (lost.store / "orders-AAAAAAAAAAAAAAAAAAAAyg/7/foreign").write_bytes(b"?")
    found = lost.compare()
    assert counted(found) == {"missing": 1, "broken": 6}
    assert found["unknownKeys"] == 1
    codes = {
        one["fields"]["segment_id"]: one["code"]
        for one in found["findings"]
        if one["code"] != "TIER-METADATA-LOST"
    }
    assert codes == {
        str(segments[name].id.uuid): code
        for name, code in (
            ("none", "TIER-INCOMPLETE-SET"),
            ("nolog", "TIER-OBJECT-MISSING"),
            ("cut", "TIER-OBJECT-LENGTH"),
            ("moved", "TIER-MANIFEST-MISMATCH"),
            ("junk", "TIER-MANIFEST-MALFORMED"),
            ("mute", "TIER-MANIFEST-MALFORMED"),
        )
    }
    lost.save()
    assert lost.apply().exit_code == 0
    assert [one[0] for one in answers_in(lost.archive).listed] == [segments["fine"].id]


def deletions(lost: Lost) -> tuple[list[SegmentMetadata], list[Any]]:
    going, gone, kept = (
        whole_segment(name, 100 * number, 100 * number + 99, partition=ORDERS)
        for number, name in enumerate(("going", "gone", "kept"))
    )
    dropped = whole_segment("dropped", partition=LOGS)
    lost.put(going, gone, kept, dropped)
    events: list[Any] = [event for one in (going, gone, kept, dropped) for event in entry_of(one)]
    events += [delete_started(going.id), delete_started(gone.id), delete_finished(gone.id)]
    return [going, gone, dropped, kept], events


def test_f114_what_the_topic_knows_as_deleted_is_named_and_not_brought_back(lost: Lost) -> None:
    """Deleted segments are named and not restored, even by the topic's history alone."""
    (going, gone, dropped, kept), events = deletions(lost)
    lost.publish(*events)
    found = lost.compare()
    assert counted(found) == {"equal": 2, "deleted": 2}
    assert found["findingCounts"] == {"TIER-DELETED-NOT-GONE": 2}
    told = {one["fields"]["segment_id"]: one["detail"] for one in found["findings"]}
    assert "DELETE_SEGMENT_STARTED" in told[str(going.id.uuid)]
    assert "DELETE_SEGMENT_FINISHED" in told[str(gone.id.uuid)]
    assert {dropped.id, kept.id} == {one[0] for one in answers_in(lost.archive).listed} - {going.id}


def test_f116_rebuild_leaves_out_what_a_backup_saw_deleted(lost: Lost, tmp_path: Path) -> None:
    """The rebuild restores nothing that a backup or snapshot knows as deleted."""
    _, events = deletions(lost)
    lost.publish(*events)
    store_partition_delete(lost, partition_delete(MARKED, LOGS))
    backup = tmp_path / "before.jsonl.gz"
    exported = CliRunner().invoke(
        cli, ["tier", "backup", "export", str(backup), "--embedded", str(lost.archive)]
    )
    assert exported.exit_code == 0, exported.output
    snapshots = tmp_path / "snapshots"
    shutil.copytree(lost.archive / "snapshots", snapshots)
    shutil.rmtree(lost.archive)
    assert counted(lost.compare()) == {"missing": 4}
    assert counted(lost.compare("--backup", str(backup))) == {"missing": 1, "deleted": 3}
    # A state has forgotten what is gone: only records tell of it.
    assert counted(lost.compare("--snapshot", str(snapshots))) == {"missing": 2, "deleted": 2}
    both = ("--snapshot", str(snapshots), "--backup", str(backup))
    assert counted(lost.compare(*both)) == {"missing": 1, "deleted": 3}
    one = next(path for path in snapshots.rglob("*") if path.is_file() and path.stat().st_size)
    assert lost("--store", str(lost.store), "--snapshot", str(one)).exit_code == 1
    junk = tmp_path / "junk"
    junk.write_bytes(b"no snapshot" * 100)
    refused = lost("--store", str(lost.store), "--snapshot", str(junk))
    assert (refused.exit_code, "junk" in refused.output) == (2, True)
    assert refused.output.count("\n") == 1


def test_rebuild_when_a_part_is_missing_then_only_that_is_brought_back(lost: Lost) -> None:
    """Only lost segments are restored; equal, different, open or superseded ones are told."""
    equal, missing = whole_segment("a", 0, 99), whole_segment("b", 100, 199)
    different, opened = whole_segment("c", 200, 299), whole_segment("d", 300, 399)
    inner, absent = whole_segment("e", 10, 50), whole_segment("f", 400, 499)
    lost.put(equal, missing, different, opened, inner)
    lost.finish(equal, replace(different, size_bytes=41), absent)
    lost.publish(entry_of(opened).start)
    found = lost.compare()
    assert counted(found) == {
        "missing": 1, "equal": 1, "different": 1, "open": 1, "superseded": 1, "lost": 1,
    }  # fmt: skip
    assert found["findingCounts"] == {
        "TIER-COPY-OPEN": 1, "TIER-EXTENT-OVERLAP": 1, "TIER-METADATA-DIFFERS": 1,
        "TIER-METADATA-LOST": 1, "TIER-OBJECT-MISSING": 1,
    }  # fmt: skip
    assert lost.save().exit_code == 1
    assert lost.apply().exit_code == 0
    assert counted(lost.compare())["equal"] == 2
    states = {one[0]: one[7] for one in answers_in(lost.archive).listed}
    assert states[missing.id] is SegmentState.COPY_SEGMENT_FINISHED
    assert states[opened.id] is SegmentState.COPY_SEGMENT_STARTED
    assert inner.id not in states


def test_rebuild_when_waves_are_small_then_the_outcome_is_the_same(lost: Lost) -> None:
    """A rebuild in small waves on threads gives the same file."""
    segments = [
        whole_segment(number, 100 * (number // 2), partition=(ORDERS, LOGS)[number % 2], last=999)
        for number in range(8)
    ]
    for one in segments:
        put_set(lost.store, one, prefix="tier/")
    request = CareRequest(
        embedded=lost.archive, store=LocalSettings(lost.store, is_made=False), prefix="tier/"
    )
    made = []
    for sets in (1, 1_000):
        path = lost.folder / f"{sets}.jsonl"
        with open_tier(request, now_ms=lambda: 5) as tier:
            report = rebuild(tier, path, RebuildOptions(wave_sets=sets))
            assert answers_of(tier.moment()).listed == []
        assert report.counts[RebuildFate.MISSING] == 8
        made.append(path.read_bytes())
    assert made[0] == made[1]


def test_apply_when_the_metadata_has_moved_on_then_what_contradicts_is_left_out(lost: Lost) -> None:
    """Segments deleted, copied again or changed since are named; the rest is published."""
    names = ("a", "b", "c", "d")
    a, b, c, d = (whole_segment(name, n * 100, n * 100 + 99) for n, name in enumerate(names))
    lost.put(a, b, c, d)
    lost.finish(whole_segment("other", partition=LOGS))
    lost.save()
    lost.finish(a, replace(b, size_bytes=9), whole_segment("newer", 200, 299))
    lost.publish(delete_started(a.id), delete_finished(a.id))
    report = json.loads(lost.apply("--output", "json").stdout)
    assert (report["published"], report["findingCounts"]) == (1, {"TIER-EVENT-REFUSED": 3})
    told = {one["fields"]["segment_id"]: one["detail"] for one in report["findings"]}
    assert "deletion is finished" in told[str(a.id.uuid)]
    assert "size_bytes" in told[str(b.id.uuid)]
    assert "holds its offsets" in told[str(c.id.uuid)]
    assert lost.apply().exit_code == 1


def test_apply_when_it_was_broken_off_then_it_is_gone_on_with(lost: Lost) -> None:
    """An application interrupted at any event continues, and its progress goes to stderr."""
    a, b = whole_segment("a", 0, 99), whole_segment("b", 100, 199)
    lost.put(a, b)
    made = lost.save("--output", "json")
    assert "2 segments' objects listed" in made.stderr
    assert "2 of 2 manifests read" in made.stderr
    json.loads(made.stdout)
    lost.publish(entry_of(a).start)
    applied = lost.apply("--output", "json")
    assert "2 of 2 segments handled" in applied.stderr
    report = json.loads(applied.stdout)
    assert (report["published"], report["resumed"]) == (2, 1)
    with open_tier(CareRequest(embedded=lost.archive)) as tier:
        assert sum(tier.moment().positions.values()) == 4


def test_apply_when_a_file_is_of_another_log_then_needs_consent(lost: Lost) -> None:
    """A file of another log is refused in one line, unless the operator allows it."""
    lost.put(whole_segment(1))
    lost.finish(whole_segment("other", partition=LOGS))
    lost.save()
    shutil.rmtree(lost.archive)
    lost.finish(whole_segment("other", partition=LOGS))
    refused = lost.apply()
    assert (refused.exit_code, "made for another log: its cluster" in refused.output) == (2, True)
    assert len(answers_in(lost.archive).listed) == 1
    assert lost.apply("--other-log").exit_code == 0
    assert len(answers_in(lost.archive).listed) == 2


def test_apply_when_topics_are_chosen_then_only_those_are_published(lost: Lost) -> None:
    """An application of chosen topics publishes only their segments, and names a mistyped one."""
    lost.put(whole_segment(1, partition=ORDERS), whole_segment(2, partition=LOGS))
    lost.save()
    result = lost.apply("--topic", "log*", "--topic", "ordres")
    assert (result.exit_code, "1 segments of" in result.stdout) == (0, True)
    assert "has no topic ordres" in result.stdout
    assert "log*" not in result.stdout
    assert {asked[0] for asked in answers_in(lost.archive).look_ups} == {str(LOGS)}
    assert counted(lost.compare("--topic", "orders")) == {"missing": 1}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(lambda text: text[:-20], "ends in the middle", id="cut in a line"),
        pytest.param(lambda text: text[: text.rindex("{")], "what stands at its end", id="cut"),
        pytest.param(lambda text: text.replace("orders", "orderz"), "not what", id="a word"),
        pytest.param(lambda text: text.replace('"version": 1', '"version": 7'), "7", id="version"),
        pytest.param(lambda text: text.replace("missing", "lacking"), "digest", id="head"),
        pytest.param(lambda text: "{}\n" + text, "first line has another", id="foreign"),
        pytest.param(lambda text: text + "{}\n", "behind the end", id="more"),
        pytest.param(lambda text: "", "empty file", id="empty"),
        pytest.param(
            lambda text: text.splitlines(True)[0] + text.splitlines(True)[-1], "its end says",
            id="lines taken out",
        ),
    ],
)  # fmt: skip
def test_apply_when_the_file_is_cut_then_is_refused(lost: Lost, change: Any, said: str) -> None:
    """An incomplete file is refused with exit code 2 before a log is opened."""
    lost.put(whole_segment(1))
    lost.save()
    lost.events.write_text(change(lost.events.read_text()))
    refused = lost.apply()
    assert refused.exit_code == 2
    assert said in refused.output
    assert refused.output.count("\n") == 1
    assert not lost.archive.exists()


def test_command_when_flags_contradict_each_other_then_says_so(lost: Lost) -> None:
    """The command refuses contradicting flags before it reads or makes anything."""
    lost.put(whole_segment(1))
    lost.save()
    store = ("--store", str(lost.store))
    for flags, said in (
        (("--apply", str(lost.events), "--save", "x.jsonl"), "leave out --save"),
        ((*store, "--dry-run"), "for --apply"),
        ((*store, "--save", str(lost.events)), "nothing is overwritten"),
        ((*store, "--save", "events.csv"), "name it .jsonl"),
        ((), "no store of objects"),
        ((*store, "--backup", str(lost.events)), "no backup of a metadata topic"),
    ):
        refused = lost(*flags)
        assert (refused.exit_code, said in refused.output) == (2, True), refused.output


def test_rebuild_when_the_file_is_compressed_then_it_is_the_same(lost: Lost) -> None:
    """A file with a compressed name has the same content."""
    lost.put(whole_segment(1))
    events = lost.folder / "events.jsonl.gz"
    assert lost("--store", str(lost.store), "--save", str(events)).exit_code == 1
    assert events.read_bytes()[:2] == b"\x1f\x8b"
    assert lost("--apply", str(events)).exit_code == 0
    assert counted(lost.compare()) == {"equal": 1}


def test_apply_when_a_service_has_the_metadata_then_it_judges_each_event(lost: Lost) -> None:
    """A service judges each event and refuses a copy that adds nothing to another broker's."""
    one = whole_segment("one", 0, 99, partition=ORDERS, broker_id=1, event_timestamp_ms=1)
    again = whole_segment("again", 0, 99, partition=ORDERS, broker_id=2, event_timestamp_ms=2)
    other = whole_segment("other", 100, 199, partition=ORDERS, broker_id=2)
    lost.put(one, again, other)
    lost.save()
    with ServedMetadata() as served:
        flags = ["--apply", str(lost.events), "--sidecar", served.address]
        done = CliRunner().invoke(cli, ["tier", "rebuild", *flags, "--output", "json"])
        report = json.loads(done.stdout)
        assert (report["published"], report["refused"], done.exit_code) == (2, 1, 1)
        assert "--bootstrap-server or --embedded" in report["findings"][0]["detail"]
        rest = CliRunner().invoke(
            cli,
            ["tier", "rebuild", "--store", str(lost.store), "--sidecar", served.address,
             "--no-spark", "--output", "json"],
        )  # fmt: skip
        # What the service has holds the offsets of the third.
        assert counted(json.loads(rest.stdout)) == {"equal": 2, "superseded": 1}


def test_rebuild_when_nothing_lies_there_then_says_what_to_look_at(lost: Lost) -> None:
    """A rebuild that finds nothing says which prefix and folder it searched."""
    lost.put(whole_segment("a", 0, 99))
    hint = "no segment lies there: look whether store, prefix and topics are those meant"
    result = lost("--store", str(lost.store), "--prefix", "other/")
    assert hint in result.stdout
    whole = lost("--store", str(lost.store)).stdout
    assert (hint in whole, "in no file: --save FILE writes them" in whole) == (False, True)


def test_rebuild_at_sigterm_leaves_no_file(lost: Lost, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild that gets SIGTERM, like Ctrl-C, leaves no file."""
    lost.put(whole_segment("a", 0, 99))
    monkeypatch.setattr(Meter, "add", lambda *_: signal.raise_signal(signal.SIGTERM))
    there = set(lost.folder.iterdir())
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        assert lost.save().exit_code == 143
    finally:
        signal.signal(signal.SIGTERM, before)
    assert set(lost.folder.iterdir()) == there
