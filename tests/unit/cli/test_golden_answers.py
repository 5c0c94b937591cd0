"""The exact output of the commands that judge and sum up, and the schemas of answers."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import jsonschema
import msgspec
import pytest

from rlmm.cli.answer_schemas import TYPES, main, schema_of
from rlmm.cli.printing.documents import json_text
from rlmm.cli.queries.check import check_answer
from rlmm.cli.queries.doctor import doctor_answer
from rlmm.cli.queries.lag import lag_answer, offsets_answer
from rlmm.cli.queries.preflight import delete_answer, reassign_answer
from rlmm.cli.queries.rehearse_compaction import rehearsal_answer
from rlmm.cli.queries.stuck import stuck_answer
from rlmm.cli.queries.usage import usage_answer
from rlmm.cli.queries.verify import verify_answer
from rlmm.inspection.check_thresholds import Thresholds
from rlmm.inspection.cluster_facts import LogDir, PartitionOffsets, PartitionPlace, TopicFacts
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.views.values import plain
from tests.support.builders import TOPIC_ID, finished, started, tp
from tests.support.cli.json_schemas import RELEASED, released_schema, require_valid
from tests.support.cli.memory_source import CLUSTER_ID, METADATA_TOPIC_ID, looking_at, printed
from tests.support.cli.metadata_history import START_MS, History
from tests.support.cli.recorded_outputs import FOLDER, require_golden
from tests.support.kafka.fake_cluster import FakeCluster, settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlmm.metadata.segment import SegmentMetadata

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NOW_MS = START_MS + DAY_MS
METADATA = "__remote_log_metadata"


def begun(label: str, start: int, last: int, at_ms: int) -> SegmentMetadata:
    return started(label, start, last, event_timestamp_ms=at_ms, max_timestamp_ms=at_ms)


async def a_history() -> History:
    """Return a hole, a hidden segment, a copy that never ends, a rejected event."""
    history = History()
    history.topic.cluster_id = CLUSTER_ID
    history.topic.topic_id = METADATA_TOPIC_ID
    history.log = MemoryLog(history.topic)
    late = START_MS + HOUR_MS
    await history.add(
        begun("a", 0, 200, START_MS), finished("a", event_timestamp_ms=START_MS),
        begun("b", 50, 100, late), finished("b", event_timestamp_ms=late),
        begun("c", 300, 399, late), finished("c", event_timestamp_ms=late),
        started("open", 400, 499, event_timestamp_ms=late), finished("nobody"),
    )  # fmt: skip
    return history


def a_cluster() -> FakeCluster:
    place = PartitionPlace(1, 3, (1, 2), (1, 2))
    orders = TopicFacts(
        "orders", TOPIC_ID, {7: place},
        settings(remote_storage_enable="true", retention_ms=str(12 * HOUR_MS)),
    )  # fmt: skip
    metadata = TopicFacts(
        METADATA, METADATA_TOPIC_ID, dict.fromkeys(range(3), PartitionPlace(1, 3, (1, 2), (1, 2))),
        settings(min_insync_replicas="1", cleanup_policy="delete", retention_ms="-1"),
    )  # fmt: skip
    ends = PartitionOffsets(0, 450, 600, 590, 399, None)
    return FakeCluster(
        {"orders": orders, METADATA: metadata},
        {tp(): ends},
        (1, 2),
        {1: settings(remote_log_storage_system_enable="true"),
         2: settings(remote_log_storage_system_enable="false")},
        [LogDir(1, "/kafka", 10**9, 10**8, {("orders", 7): 4_096})],
    )  # fmt: skip


LIMITS: dict[str, Any] = {"copy_open_ms": HOUR_MS, "delete_open_ms": HOUR_MS}


ANSWERS = {
    "stuck": partial(stuck_answer, topic=None, reads_history=True, **LIMITS),
    "verify": partial(verify_answer, topic=None, is_strict=False, reads_history=True),
    "check": partial(check_answer, thresholds=Thresholds(), **LIMITS),
    "doctor": partial(doctor_answer, is_strict=False),
    "usage": partial(
        usage_answer, topic=None, grouping="topic", due_within_ms=HOUR_MS, copy_open_ms=HOUR_MS,
        gib_month=1_000.0, put_thousand=0.0,
    ),
    "lag": partial(lag_answer, topic=None, window_ms=2 * DAY_MS, shows_disks=False),
    "disks": partial(lag_answer, topic=None, window_ms=2 * DAY_MS, shows_disks=True),
    "offsets": partial(offsets_answer, topic=None),
    "preflight-reassign": partial(
        reassign_answer, topic="orders", partitions=None, to_brokers="2"
    ),
    "preflight-delete": partial(delete_answer, topic="orders"),
    "rehearsal": partial(
        rehearsal_answer, partitions=None, retention_ms=None, shows_segments=False
    ),
    "rehearsal-segments": partial(
        rehearsal_answer, partitions=None, retention_ms=None, shows_segments=True
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "ask"), ANSWERS.items(), ids=ANSWERS)
async def test_answer_when_printed_is_what_was_printed_before(name: str, ask: Any) -> None:
    """The table and the document of each, with the cluster beside the source."""
    looking = looking_at(await a_history(), cluster=a_cluster(), now_ms=NOW_MS)
    require_golden(f"{name}.txt", await printed(await ask(looking)))
    whole = await printed(await ask(looking), "json")
    require_valid(json.loads(whole))
    require_golden(f"{name}.json", whole)


DOCUMENTS = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("kind", TYPES)
def test_schema_says_its_name_and_names_every_property(kind: str) -> None:
    """A schema refuses every property that it does not name."""
    schema = schema_of(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["schema"] == {"const": f"rlmm/{kind}/1"}
    open_ones = [
        where
        for where, one in _objects(schema, "")
        if "properties" in one and one.get("additionalProperties") is not False
    ]
    assert open_ones == []


def test_schemas_when_named_are_those_that_were_released() -> None:
    """Each released schema has a generated one of the same name, and none is new."""
    assert {f"{kind}-1" for kind in TYPES} == set(RELEASED)


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.txt")), ids=lambda file: file.stem)
def test_recorded_table_when_shown_fits_into_80_columns(file: Path) -> None:
    """Tables fit with names and offsets of the usual length; only keys of objects are longer."""
    words = {line: line.split() for line in file.read_text("utf-8").splitlines()}
    assert [line for line, found in words.items() if len(line) > 80 and len(found) > 2] == []


@pytest.mark.parametrize("kind", TYPES)
def test_schema_has_the_fields_of_the_released_one(kind: str) -> None:
    """Names, ids and required fields of document, items and foot are those of the release."""
    today, released = schema_of(kind), released_schema(f"{kind}-1")
    for name in ("$schema", "$id", "title"):
        assert today[name] == released[name]
    assert set(today["required"]) == set(released["required"])
    assert set(today["properties"]) - {"notes"} == set(released["properties"]) - {"notes"}
    item = today["$defs"][today["properties"]["items"]["items"]["$ref"].rpartition("/")[2]]
    kept = released["$defs"]["item"]
    assert list(item["properties"]) == list(kept["properties"])
    assert item["required"] == kept["required"]


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.stem)
def test_recorded_answer_when_read_by_its_types_is_written_as_it_was(file: Path) -> None:
    """A recorded document is valid, and its types read it and write it to the letter."""
    document = json.loads(file.read_text("utf-8"))
    require_valid(document)
    head: Any
    item: Any
    foot: Any
    _, head, item, foot = TYPES[document["schema"].split("/")[1]]
    parts = {name for one in (head, foot) if one for name in one.__struct_fields__}
    assert {"schema", "items"} | parts >= set(document)
    for part, kind in [
        *((one, item) for one in document["items"]),
        *((_fields(document, one), one) for one in (head, foot) if one),
    ]:
        assert json_text(plain(msgspec.convert(part, kind, strict=True))) == json_text(part)


def test_schemas_when_printed_are_named_as_their_files_were(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An operator sees every name, and the schema of a name; an unknown name is refused."""
    assert main([]) == 0
    assert capsys.readouterr().out.split() == sorted(RELEASED)
    assert main(["stuck-1"]) == 0
    assert json.loads(capsys.readouterr().out) == schema_of("stuck")
    assert main(["stuck-2"]) == 2


def _fields(document: dict[str, Any], kind: Any) -> dict[str, Any]:
    names = set(kind.__struct_encode_fields__)
    return {name: value for name, value in document.items() if name in names}


def _objects(schema: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield where, schema
        for name, one in schema.items():
            yield from _objects(one, f"{where}/{name}")
    elif isinstance(schema, list):
        for number, one in enumerate(schema):
            yield from _objects(one, f"{where}/{number}")
