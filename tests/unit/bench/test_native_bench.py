"""The benchmark of the native core, in its quick form, and what it does with wrong answers."""

from __future__ import annotations

import gc
import json
import re
import shutil
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from bench import native, native_ground, native_jvm, sidecar_ground
from bench.__main__ import main
from bench.figures import Run
from bench.history import METADATA_PARTITIONS, written_events
from bench.native_engines import apply_all, empty_shards, live_segments
from bench.native_ground import QUICK, Ground
from bench.native_lookups import compare_lookups
from bench.native_stream import NOT_FOUND, Stream
from rlmm.base.native_core import ShardEngine
from rlmm.records.batch import Batch, walk
from tests.support.repository.tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("rlmm_native", reason="needs the native core: make native")

has_compiler = pytest.mark.skipif(
    not any(map(shutil.which, sidecar_ground.COMPILERS)), reason="needs a C compiler"
)
IN_PROCESS = {
    "N1": {
        "N1: native / Python, batches of 500": 9.0,
        "N1: native / Python, batches of 1": 11.0,
        "N1: two cores / one, batches of 500": 1.7,
        "N1: two cores / one, batches of 1": 1.7,
    },
    "N3": {
        "N3: one look-up, p99, engine native": 5.0,
        "N3: native, one by one / Python, one by one": 6.0,
        "N3: native, 64 in a call / Python, one by one": 15.0,
        "N3: native, 1,000 in a call / Python, one by one": 15.0,
    },
    "N4": {"N4: out, Python / native": 4.0, "N4: in, Python / native": 20.0},
    "N8": {"N8: growth, engine native": 2.0},
    "N9": {
        "N9: the loop held by one apply, p99.9": 1.0,
        "N9: the loop held by one apply, max": 3.0,
        "N9: read during a replay at full speed / idle, p99": 1.3,
        "N9: slowest read during a replay at full speed, above idle": 5.0,
        "N9: read during snapshots / idle, p99": 1.3,
        "N9: slowest read during snapshots, above idle": 5.0,
    },
}
OF_A_SERVICE = {
    "N2": {"N2: `rlmm serve` after a replay of 8,000 events, engine native": 230.0},
    "N5": {
        "N5: from snapshots, engine native": 0.9,
        "N5: by replay, engine native": 1.2,
        "N5: from snapshots, after SIGKILL / after an orderly stop, engine native": 1.2,
        "N5: by replay, after SIGKILL / after an orderly stop, engine native": 1.2,
    },
    "N7": {
        "N7: rlmm / echo in C, at random": 2.2,
        "N7: rlmm / echo in C, hot": 1.9,
        "N7: 16 in a frame / 16 frames": 0.20,
    },
}
"""What is asked in each section without Kafka's classes and without a broker."""


@pytest.fixture
def without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_ground, "kafka_classes", lambda: (None, "needs mvn"))


def recorded_run(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    output = tmp_path / "run.json"
    command = ["native", "--quick", *arguments, "--output", str(output)]
    try:
        done = CliRunner().invoke(main, command)
    finally:
        gc.unfreeze()  # the service sets apart what it holds, for good
    assert done.exit_code == 0, done.output
    recorded: dict[str, Any] = json.loads(output.read_text())
    for figure in recorded["figures"]:
        assert figure["name"] in done.output
    return recorded


def assert_states(recorded: dict[str, Any], section: str, wanted: dict[str, float]) -> None:
    figures = recorded["figures"]
    assert len({(figure["name"], figure["unit"]) for figure in figures}) == len(figures)
    assert all(figure["name"].startswith(f"{section}: ") for figure in figures)
    asked = {
        figure["name"]: figure.get("asked_at_least", figure.get("asked_at_most"))
        for figure in figures
        if "met" in figure
    }
    assert asked.items() >= wanted.items()
    assert recorded["sections"] == [section]
    assert recorded["sizes"]["events"] == QUICK.events


@pytest.mark.slow
@pytest.mark.usefixtures("without_java")
@pytest.mark.parametrize("section", IN_PROCESS)
def test_quick_run_of_a_section_states_what_is_asked(section: str, tmp_path: Path) -> None:
    """Each asked figure is there once with its bound; missing classes of Kafka are told."""
    recorded = recorded_run(tmp_path, "--only", section)
    assert_states(recorded, section, IN_PROCESS[section])
    is_beside_kafka = section in ("N1", "N3")
    told = "without Kafka's classes: needs mvn" in recorded.get("notes", [])
    assert told is is_beside_kafka
    assert str(tmp_path) not in json.dumps(recorded)


@pytest.mark.slow
@has_compiler
@pytest.mark.usefixtures("without_java")
@pytest.mark.parametrize("section", OF_A_SERVICE)
def test_quick_run_with_a_service_states_what_is_asked(section: str, tmp_path: Path) -> None:
    """The same where `rlmm serve` is started, stopped and killed on a data folder."""
    recorded = recorded_run(tmp_path, "--only", section)
    assert_states(recorded, section, OF_A_SERVICE[section])


def test_run_without_a_broker_says_so(tmp_path: Path) -> None:
    """The section of the broker measures nothing in the quick form."""
    recorded = recorded_run(tmp_path, "--only", "N6")
    assert "N6: without a broker" in recorded["notes"]
    assert not recorded["figures"]


def test_every_section_of_the_table_is_there() -> None:
    """The sections are N1 to N9, in this order."""
    assert list(native.SECTIONS) == [f"N{number}" for number in range(1, 10)]


# ------------------------------------------------------------------------------ the contenders


class FakeClasses:
    """Kafka's classes, which find so many segments and such ids."""

    def __init__(self, found: int, ids: str) -> None:
        self._found, self._ids = found, ids

    def apply(self, stream: Stream, per_batch: int, events: int, passes: int, hot: int) -> Any:
        del stream, per_batch, events, passes, hot
        one = {"asked": 1, "found": self._found, "ids": self._ids, "thread_ns": 1_000}
        return {"lookups": [one], "hot": [one]}


def looked_up(tmp_path: Path, classes: FakeClasses) -> Run:
    run = Run(in_this_process=True)
    stream = Stream(tmp_path, QUICK.user_partitions, QUICK.topics)
    ground = Ground(run, QUICK, tmp_path, stream)
    ground._jvm = classes  # type: ignore[assignment]
    compare_lookups(ground)
    return run


def test_look_ups_when_contenders_answer_differently_end_the_run(tmp_path: Path) -> None:
    """Another number of answers ends the run, and so do other ids."""
    with pytest.raises(AssertionError, match="the contenders answer differently") as told:
        looked_up(tmp_path, FakeClasses(1, "0"))
    ours = next(one for one in eval_pairs(str(told.value)) if one != (1, 0))
    with pytest.raises(AssertionError, match="the contenders answer differently"):
        looked_up(tmp_path, FakeClasses(ours[0], f"{ours[1] ^ 1:x}"))
    run = looked_up(tmp_path, FakeClasses(ours[0], f"{ours[1]:x}"))
    values = {figure.name: figure.value for figure in run.figures}
    assert values["N3: look-ups answered, equal in all"] == ours[0]
    assert values["N3: one look-up, Kafka's classes, warm"] == 1_000
    assert "N3: native, one by one / Kafka's classes" in values


def eval_pairs(text: str) -> Iterator[tuple[int, int]]:
    for found, ids in re.findall(r"\((\d+), (\d+)\)", text):
        yield int(found), int(ids)


def test_applying_a_history_with_a_hole_ends_the_run(tmp_path: Path) -> None:
    """A history whose beginning is not there is not measured, and names what was not applied."""
    stream = Stream(tmp_path, 8, 2)
    stream.write(500, [2_000, 4_000])
    sets = list(stream.sets(500, 4_000))
    behind = sets[len(list(stream.sets(500, 2_000))) :]
    for engine in (ShardEngine.PYTHON, ShardEngine.NATIVE):
        with pytest.raises(AssertionError, match="rejected="):
            apply_all(empty_shards(engine), behind)
        assert apply_all(empty_shards(engine), sets) == 4_000


# ---------------------------------------------------------------------------------- the stream


def test_stream_holds_the_history_and_shorter_ones_as_its_beginning(tmp_path: Path) -> None:
    """Sets up to a mark hold exactly the events up to it, partition by partition, in order."""
    stream = Stream(tmp_path, 8, 2)
    stream.write(500, [1_000, 3_000])
    stream.write(1, [3_000])
    for per_batch, count in ((500, 1_000), (500, 3_000), (1, 3_000)):
        expected: list[list[bytes]] = [[] for _ in range(METADATA_PARTITIONS)]
        for place, value in islice(written_events(8, topics=2), count):
            expected[place].append(value)
        found: list[list[bytes]] = [[] for _ in range(METADATA_PARTITIONS)]
        for one in stream.sets(per_batch, count):
            for batch in walk(one.data):
                assert isinstance(batch, Batch)
                assert batch.record_count <= per_batch
                found[one.partition] += [value for _, value in batch.values() if value is not None]
        assert found == expected
    with pytest.raises(AssertionError, match="1,500 events are no end of a set"):
        list(stream.sets(500, 1_500))


def test_stream_has_few_topics_with_many_partitions(tmp_path: Path) -> None:
    """User partitions of one topic share its name and id, and none is there twice."""
    users = Stream(tmp_path, 40, 4).partitions()
    assert len(set(users)) == 40
    assert len({(one.topic, one.topic_id) for one in users}) == 4
    assert {one.partition for one in users} == set(range(10))


def test_questions_are_answered_unless_they_ask_for_nothing(tmp_path: Path) -> None:
    """Both engines answer the same questions, nine of ten, with the same segments."""
    stream = Stream(tmp_path, 40, 4)
    stream.write(500, [8_000])
    answers = []
    for engine in (ShardEngine.PYTHON, ShardEngine.NATIVE):
        shards = empty_shards(engine)
        assert apply_all(shards, stream.sets(500, 8_000)) == 8_000
        assert live_segments(shards) > 3_000
        stream.write_questions(shards, 400)
        users = stream.partitions()
        found = []
        for one in stream.questions():
            each = [shard.row_for(users[one.user], one.epoch, one.offset) for shard in shards]
            answer = next((row for row in each if row is not None), None)
            assert (answer is None) is (one.offset == NOT_FOUND)
            found.append(answer)
        answers.append(found)
    assert answers[0] == answers[1]
    assert 300 < sum(answer is not None for answer in answers[0]) < 400


def test_kafkas_classes_are_those_of_the_broker_of_the_tests() -> None:
    """Both projects of Maven name one version."""
    named = [
        re.findall(r"<kafka\.version>(.+)</kafka\.version>", path.read_text())
        for path in (native_jvm.PROJECT / "pom.xml", ROOT / "tests" / "kafka" / "pom.xml")
    ]
    assert named[0] == named[1]
    assert len(named[0]) == 1
