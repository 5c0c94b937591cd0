"""Rebuilt events are published: those that are still missing, and nothing else."""

from __future__ import annotations

import json
import shutil
import signal
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from rlmm.cli.main import cli
from spark_tiering.maintenance.rebuild.document import entry_of
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.reporting.progress import Meter
from tests.support.builders import delete_finished, delete_started
from tests.support.server.memory_service import ServedMetadata
from tests.support.stores.segment_objects import whole_segment
from tests.support.tier.lost_tiers import LOGS, ORDERS, Lost, answers_in, counted

pytestmark = pytest.mark.usefixtures("bare_environment")


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
    assert (report["published"], report["refused"]) == (1, 3)
    assert report["findingCounts"] == {"TIER-EVENT-REFUSED": 3}
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


def test_apply_when_a_file_is_of_another_log_then_needs_consent(
    lost: Lost,
) -> None:
    """A file of another log is refused in one line, unless the operator allows it."""
    lost.put(whole_segment(1))
    lost.finish(whole_segment("other", partition=LOGS))
    lost.save()
    shutil.rmtree(lost.archive)
    lost.finish(whole_segment("other", partition=LOGS))
    refused = lost.apply()
    assert refused.exit_code == 2
    assert "made for another log: its cluster is" in refused.output
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
    assert not json.loads(lost.save("--prefix", "other/", "--output", "json").stdout)["file"]
    assert hint not in lost("--store", str(lost.store)).stdout


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
