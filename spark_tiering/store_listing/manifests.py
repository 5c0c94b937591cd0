"""The manifests of a store by topic and partition, in bounded memory; only names are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from spark_tiering.layout.object_names import (
    ObjectKind,
    main_key,
    parse_object_key,
    partition_folder,
)
from spark_tiering.stores.results import ListedFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from spark_tiering.layout.object_names import ObjectName
    from spark_tiering.stores.protocol import ObjectStore


class TopicFolder(NamedTuple):
    """Holds the common start of all keys of a topic, with the slash behind it."""

    key: str
    topic: str
    topic_id: Uuid


class ListedManifest(NamedTuple):
    """Names a manifest in a listing: the segment is whole, as far as names can tell."""

    key: str
    name: ObjectName
    size_bytes: int
    modified_ms: int
    storage_class: str = ""


def every_topic(topic: str) -> bool:
    del topic
    return True


def topic_folders(
    store: ObjectStore, prefix: str = "", wants_topic: Callable[[str], bool] = every_topic
) -> Iterator[TopicFolder]:
    """Return the folders of topics under *prefix*, in no order."""
    for one in store.level(prefix):
        found = read_topic_folder(one.key, prefix) if isinstance(one, ListedFolder) else None
        if found is not None and wants_topic(found.topic):
            yield found


def read_topic_folder(key: str, prefix: str = "") -> TopicFolder | None:
    """Return the topic whose folder *key* is, None where it is none's."""
    # As of an object that may be in there: names are judged in one place.
    name = parse_object_key(f"{key}0/{0:020d}-{'A' * 22}.{ObjectKind.MANIFEST}", prefix)
    if name is None or partition_folder(name.segment_id.partition, prefix) != f"{key}0/":
        return None
    partition = name.segment_id.partition
    return TopicFolder(key, partition.topic, partition.topic_id)


def partition_folders(store: ObjectStore, folder: TopicFolder) -> Iterator[TopicIdPartition]:
    for one in store.level(folder.key):
        if isinstance(one, ListedFolder):
            number = one.key.removeprefix(folder.key).removesuffix("/")
            if is_partition(number):
                yield TopicIdPartition(folder.topic_id, folder.topic, int(number))


def is_partition(text: str) -> bool:
    uuid = Uuid(bytes(16))
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) < 2**31):
        return False
    partition = TopicIdPartition(uuid, "t", int(text))
    return main_key(SegmentId(partition, uuid), 0).split("/")[1] == text


def partition_manifests(
    store: ObjectStore, partition: TopicIdPartition, prefix: str = ""
) -> Iterator[ListedManifest]:
    """List the manifests of a partition; by start offset where the store lists by name."""
    return _manifests(store, partition_folder(partition, prefix), prefix)


def list_manifests(
    store: ObjectStore, prefix: str = "", wants_topic: Callable[[str], bool] = every_topic
) -> Iterator[ListedManifest]:
    for folder in topic_folders(store, prefix, wants_topic):
        yield from _manifests(store, folder.key, prefix)


def _manifests(store: ObjectStore, folder: str, prefix: str) -> Iterator[ListedManifest]:
    for one in store.list(folder):
        if one.key.endswith(f".{ObjectKind.MANIFEST}"):
            name = parse_object_key(one.key, prefix)
            if name is not None:
                yield ListedManifest(
                    one.key, name, one.size_bytes, one.modified_ms, one.storage_class
                )
