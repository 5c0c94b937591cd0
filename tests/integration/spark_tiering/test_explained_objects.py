"""`rlmm explain --check-objects`: the objects of a segment, looked at where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlmm.cli.queries.explain_answer import ExplainQuestion, explain_answer
from rlmm.cli.tier_common.object_check import checked_of, checked_store
from rlmm.errors import ConfigError
from rlmm.inspection.explain_findings import OBJECT_UNKNOWN
from rlmm.inspection.selectors import parse_position
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_plan.inputs import StoredObjects
from spark_tiering.executor.object_check import StoredSegmentState
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import open_store
from spark_tiering.stores.results import ObjectFacts
from spark_tiering.stores.s3_settings import S3Settings
from tests.support.cli.json_schemas import require_valid
from tests.support.cli.memory_source import document_of, looking_at, printed
from tests.support.cli.metadata_history import History
from tests.support.partitions.segments import example_partition
from tests.support.tier.copy_tasks import ORDERS, PREFIX, ZSTD, copy_task, run

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.cli.tier_common.object_store import StoreChoice
    from rlmm.metadata.segment import SegmentMetadata


def copied(folder: Path) -> SegmentMetadata:
    task = copy_task(example_partition(), options=ZSTD)
    with open_store(LocalSettings(folder)) as store:
        run(task, store)
    return task.segment


async def asked(segment: SegmentMetadata, store: StoreChoice, *, is_sure: bool = False) -> Any:
    """Return the output of `rlmm explain` for an offset of *segment* and its exit code."""
    history = History()
    update = SegmentUpdate(segment.id, 1, 0, None, SegmentState.COPY_SEGMENT_FINISHED)
    await history.add(segment, update)
    label, offset = parse_position(f"orders-{ORDERS.partition}@{segment.start_offset + 1}")
    asking = ExplainQuestion(label, offset, store=store, is_sure=is_sure)
    answer = await explain_answer(looking_at(history), asking=asking)
    document = await document_of(answer)
    require_valid(document)
    assert (answer.exit_code == 1) == bool(document["items"])
    return document, await printed(answer, width=300)


@pytest.mark.parametrize("is_sure", [False, True])
async def test_whole_objects_are_reported_with_sizes(tmp_path: Path, is_sure: bool) -> None:
    """The explanation lists whole objects with their sizes, by head requests or by reading them."""
    segment = copied(tmp_path / "store")
    document, text = await asked(
        segment, checked_store(str(tmp_path / "store"), PREFIX), is_sure=is_sure
    )
    explained = document["explained"]
    assert document["items"] == []
    assert explained["checked"]["found"] == "whole"
    assert explained["objects"]["log"].startswith(PREFIX)
    for name in ("log", "indexes", "manifest"):
        assert explained["checked"]["objects"][name]["size_bytes"] > 0
    assert "objects are     whole" in text


@pytest.mark.parametrize(
    ("kinds", "code", "found"),
    [
        (list(ObjectKind), "OBJECT-MISSING", "none"),
        ([ObjectKind.LOG], "OBJECT-MISSING", "damaged"),
        ([ObjectKind.INDEXES], "OBJECT-MISSING", "damaged"),
        ([ObjectKind.MANIFEST], "OBJECT-MISSING", "partial"),
    ],
    ids=["all", "log", "indexes", "manifest"],
)
async def test_objects_that_are_missing_are_named(
    tmp_path: Path, kinds: list[ObjectKind], code: str, found: str
) -> None:
    """Missing objects are named, as after a lifecycle rule or a manual deletion."""
    segment = copied(tmp_path / "store")
    keys = object_keys(segment.id, segment.start_offset, PREFIX)
    for kind in kinds:
        (tmp_path / "store" / keys[kind]).unlink()
    document, text = await asked(segment, checked_store(str(tmp_path / "store"), PREFIX))
    assert [one["code"] for one in document["items"]] == [code]
    assert document["explained"]["checked"]["found"] == found
    assert "not there" in text


async def test_objects_that_were_damaged_are_told(tmp_path: Path) -> None:
    """The explanation finds a wrong length at once and a wrong byte by a full read."""
    segment = copied(tmp_path / "store")
    log = tmp_path / "store" / object_keys(segment.id, segment.start_offset, PREFIX)[ObjectKind.LOG]
    content = log.read_bytes()
    log.write_bytes(content + b"x")
    document, _ = await asked(segment, checked_store(str(tmp_path / "store"), PREFIX))
    assert [one["code"] for one in document["items"]] == ["OBJECT-DAMAGED"]
    assert "its manifest says" in document["items"][0]["detail"]
    log.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    document, _ = await asked(segment, checked_store(str(tmp_path / "store"), PREFIX), is_sure=True)
    assert [one["code"] for one in document["items"]] == ["OBJECT-DAMAGED"]


async def test_store_that_is_absent_costs_its_answer_alone(tmp_path: Path) -> None:
    """A missing store costs only the answer about objects, and is not created."""
    segment = copied(tmp_path / "store")
    nowhere = tmp_path / "nowhere"
    document, _ = await asked(segment, checked_store(str(nowhere), PREFIX))
    assert document["explained"]["is_found"] is True
    assert not nowhere.exists()
    with pytest.raises(ConfigError):
        checked_store("ftp://host/x")


def test_objects_of_which_nobody_can_say_are_told_as_unknown() -> None:
    """Archived objects are unknown, as they must be restored before a read."""
    facts = ObjectFacts(10, None, 0, "GLACIER", is_archived=True)
    seen = StoredSegmentState(
        StoredObjects.UNKNOWN, {ObjectKind.MANIFEST: facts}, None, ("archived",)
    )
    checked = checked_of(seen)
    assert checked.kind is OBJECT_UNKNOWN
    assert checked.view.found == "unknown"
    assert checked.detail == "archived"


def test_prefix_in_the_address_of_a_bucket_counts() -> None:
    """A bucket address keeps its prefix and its other parameters, as in `rlmm tier`."""
    choice = checked_store("s3://bucket/tiered/", region="eu-central-1")
    settings = choice.settings
    assert isinstance(settings, S3Settings)
    assert (settings.bucket, settings.region, choice.prefix) == (
        "bucket",
        "eu-central-1",
        "tiered/",
    )
