"""Object names: one name per object, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from spark_tiering.layout.object_names import (
    ObjectKind,
    ObjectName,
    find_object_name,
    main_key,
    object_key,
    object_keys,
    parse_object_key,
    partition_folder,
)

TOPIC_ID = Uuid.parse("OjSKW9lMTN6VnyEIzEU0nA")
SEGMENT = SegmentId(
    TopicIdPartition(TOPIC_ID, "orders-eu", 7), Uuid.parse("7V870kP2RF2vkhemwSMxug")
)
LOG_KEY = "orders-eu-OjSKW9lMTN6VnyEIzEU0nA/7/00000000000000000028-7V870kP2RF2vkhemwSMxug.log"


def test_key_of_a_segment_when_asked_is_the_plugins() -> None:
    """A key has the plugin's form: topic, topic id, partition, 20 digits, segment id, suffix."""
    assert object_key(SEGMENT, 28, ObjectKind.LOG) == LOG_KEY
    assert object_key(SEGMENT, 28, ObjectKind.MANIFEST, "tier/").startswith("tier/orders-eu-")
    assert object_key(SEGMENT, 28, ObjectKind.MANIFEST).endswith(".rsm-manifest")


@pytest.mark.parametrize(
    ("topic", "partition", "offset", "told"),
    [
        *((topic, 7, 28, "topic") for topic in ("", "a/b", "../../etc", "a b", "ü", "x" * 250)),
        ("orders", -1, 28, "-1"),
        ("orders", 7, -1, "-1"),
    ],
)
def test_key_of_impossible_ids_refused(topic: str, partition: int, offset: int, told: str) -> None:
    """The key of a topic with a slash, or of a negative partition or offset, is refused."""
    segment = SegmentId(TopicIdPartition(TOPIC_ID, topic, partition), SEGMENT.uuid)
    with pytest.raises(InvalidArgument, match=told):
        object_key(segment, offset, ObjectKind.LOG)


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(LOG_KEY.removesuffix("log") + "txt", id="unknown suffix"),
        pytest.param(LOG_KEY.replace("00000000000000000028", "28"), id="short offset"),
        pytest.param(LOG_KEY.replace("/7/", "/07/"), id="padded partition"),
        pytest.param(LOG_KEY.replace("/7/", "/9999999999/"), id="partition above int32"),
        pytest.param(LOG_KEY.replace("/7/", f"/{'9' * 5000}/"), id="partition of 5000 digits"),
        pytest.param(LOG_KEY.replace("00000000000000000028", "9" * 20), id="offset above int64"),
        pytest.param("x" * 241 + LOG_KEY, id="topic too long"),
        pytest.param(LOG_KEY[len("orders-eu") :], id="no topic"),
        pytest.param("x/" + LOG_KEY, id="another prefix"),
        pytest.param(LOG_KEY.replace("Mxug", "Mxuh"), id="not our form"),
        pytest.param(LOG_KEY + "\n", id="trailing line end"),
        pytest.param("", id="nothing"),
    ],
)
def test_key_of_something_else_when_parsed_names_nothing(key: str) -> None:
    """A key that the project would not have written belongs to no segment."""
    assert parse_object_key(key) is None


def test_keys_of_a_segment_when_asked_are_three_and_the_manifest_is_last() -> None:
    """A segment has three keys, the manifest's last, as objects are written in that order."""
    keys = object_keys(SEGMENT, 28, "tier/")
    assert list(keys) == [ObjectKind.LOG, ObjectKind.INDEXES, ObjectKind.MANIFEST]
    assert keys[ObjectKind.LOG] == f"tier/{LOG_KEY}"
    assert all(key == object_key(SEGMENT, 28, kind, "tier/") for kind, key in keys.items())
    assert main_key(SEGMENT, 28) == LOG_KEY.removesuffix(".log")


def test_folder_of_a_partition_when_asked_is_no_beginning_of_anothers() -> None:
    """The folder of partition 7 is no prefix of the folder of partition 70."""
    assert LOG_KEY.startswith(partition_folder(SEGMENT.partition))
    assert partition_folder(SEGMENT.partition, "tier/").endswith("nA/7/")


@pytest.mark.parametrize("prefix", ["", "tier/", "a/b-c/", "/", "orders-eu-1/7/"])
def test_key_whose_prefix_is_not_known_when_found_is_told_apart(prefix: str) -> None:
    """A key under a former prefix is recognised as such."""
    expected = (prefix, ObjectName(SEGMENT, 28, ObjectKind.LOG))
    assert find_object_name(prefix + LOG_KEY) == expected
    assert find_object_name(prefix + LOG_KEY.removesuffix("log")) is None
    assert find_object_name(prefix) is None


@given(
    topic=st.from_regex(r"[A-Za-z0-9._-]{1,60}", fullmatch=True),
    ids=st.tuples(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16)),
    partition=st.integers(0, 2**31 - 1),
    start=st.integers(0, 2**63 - 1),
    kind=st.sampled_from(ObjectKind),
    prefix=st.sampled_from(["", "tier/", "a-b_"]),
)
def test_key_of_any_segment_when_parsed_gives_the_segment_back(
    topic: str, ids: tuple[bytes, bytes], partition: int, start: int, kind: ObjectKind, prefix: str
) -> None:
    """A parsed key gives back segment and object, whatever dashes names and ids contain."""
    segment_id = SegmentId(TopicIdPartition(Uuid(ids[0]), topic, partition), Uuid(ids[1]))
    key = object_key(segment_id, start, kind, prefix)
    assert parse_object_key(key, prefix) == ObjectName(segment_id, start, kind)
