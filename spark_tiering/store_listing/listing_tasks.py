"""Listing tasks: each lists some folders, or reads one file of an inventory, into blobs of rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.errors import ConfigError, RlmmError
from spark_tiering.store_listing.inventory_files import fetched
from spark_tiering.store_listing.inventory_rows import read_rows
from spark_tiering.store_listing.key_names import OtherKey, Prefixes, SegmentKey, shown
from spark_tiering.store_listing.manifests import read_topic_folder
from spark_tiering.store_listing.rows import ObjectRow, ObjectRows
from spark_tiering.stores.opening import process_store
from spark_tiering.stores.results import ListedFolder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from spark_tiering.copy_plan.rules import SegmentSelection
    from spark_tiering.store_listing.inventory import Inventory, InventoryFile
    from spark_tiering.store_listing.inventory_files import InventoryPlace
    from spark_tiering.store_listing.rows import ShardPlaces
    from spark_tiering.stores.opening import StoreSettings
    from spark_tiering.stores.protocol import ObjectStore
    from spark_tiering.stores.results import ListedObject

EXAMPLES_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class SortRules:
    """Tells how the listed objects are sorted: the same for all units of a job."""

    prefixes: Prefixes
    shards: ShardPlaces
    topics: SegmentSelection


@dataclass(frozen=True, slots=True)
class ListTask:
    """Lists the objects under each of *folders*, which include the prefix that they belong to."""

    store: StoreSettings
    folders: tuple[tuple[int, str], ...]
    sorting: SortRules


@dataclass(frozen=True, slots=True)
class InventoryTask:
    place: InventoryPlace
    inventory: Inventory
    file: InventoryFile
    sorting: SortRules


@dataclass(slots=True)
class UnrecognizedKeys:
    """Keys of one kind that are no segment's."""

    count: int = 0
    size_bytes: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, key: str, size_bytes: int) -> None:
        self.count += 1
        self.size_bytes += size_bytes
        if len(self.examples) < EXAMPLES_MAX:
            self.examples.append(shown(key))

    def join(self, other: UnrecognizedKeys) -> None:
        self.count += other.count
        self.size_bytes += other.size_bytes
        self.examples = [*self.examples, *other.examples][:EXAMPLES_MAX]


@dataclass(slots=True)
class ListingResult:
    """Holds the result of one unit; *fault* is the code of the error that stopped it."""

    blobs: dict[int, bytes] = field(default_factory=dict)
    objects: int = 0
    others: dict[OtherKey, UnrecognizedKeys] = field(default_factory=dict)
    noncurrent: UnrecognizedKeys = field(default_factory=UnrecognizedKeys)
    """Versions that others have followed: no reader sees them, and they are paid for."""
    fault: tuple[str, str] | None = None


def look_into(task: ListTask | InventoryTask) -> ListingResult:
    """Carry out one unit; an error of the store, or of the inventory, is a value."""
    looked = ListingResult()
    try:
        if isinstance(task, ListTask):
            sort_objects(_listed(task), task.sorting, looked)
        else:
            sort_objects(_of_inventory(task, looked), task.sorting, looked)
    except RlmmError as error:
        return ListingResult(fault=(error.code, str(error)))
    return looked


def _listed(task: ListTask) -> Iterator[tuple[str, int, int, str]]:
    store, prefixes = process_store(task.store), task.sorting.prefixes
    for prefix, folder in task.folders:
        for one in store.list(folder):
            # What is under a longer prefix as well is listed for that one.
            if len(prefixes.all) == 1 or prefixes.owner(one.key) == prefix:
                yield one


def _of_inventory(
    task: InventoryTask, looked: ListingResult
) -> Iterator[tuple[str, int, int, str]]:
    inventory, file = task.inventory, task.file
    with fetched(process_store(task.place.store), task.place, file) as kept:
        for row in read_rows(kept, inventory.format, inventory.columns, file.key):
            if row.bucket not in ("", inventory.bucket):
                msg = f"inventory file {file.key}: a row is of bucket {row.bucket[:80]!r}, and the "
                msg += f"manifest says {inventory.bucket!r}"
                raise ConfigError(msg)
            if row.is_marker:
                continue
            if not row.is_current:
                if task.sorting.prefixes.owner(row.key) is not None:
                    looked.noncurrent.add(row.key, row.size_bytes)
                continue
            yield row.key, row.size_bytes, row.modified_ms, row.storage_class


def sort_objects(
    found: Iterable[ListedObject | tuple[str, int, int, str]],
    sorting: SortRules,
    looked: ListingResult,
) -> None:
    """Sort the *found* objects into *looked*: key, size, when it was written, storage class."""
    rows: dict[int, ObjectRows] = {}
    wanted: dict[str, bool] = {}
    for key, size_bytes, modified_ms, storage_class in found:
        name = sorting.prefixes.read(key)
        if not isinstance(name, SegmentKey):
            looked.others.setdefault(name, UnrecognizedKeys()).add(key, size_bytes)
            continue
        topic = name.partition.topic
        is_wanted = wanted.get(topic)
        if is_wanted is None:
            is_wanted = wanted[topic] = sorting.topics.wants_topic(topic)
        if is_wanted:
            shard = sorting.shards.of(name.partition, name.uuid)
            if shard not in rows:
                rows[shard] = ObjectRows()
            rows[shard].add(
                ObjectRow(
                    name.partition, name.start_offset, name.uuid, name.prefix, name.kind,
                    storage_class, size_bytes, modified_ms,
                )
            )  # fmt: skip
            looked.objects += 1
    looked.blobs = {shard: one.blob() for shard, one in rows.items()}


UNKNOWN_OBJECTS: Final = 10_000
"""As many are reckoned with where nothing is known."""


class FolderToList(NamedTuple):
    prefix: int
    folder: str
    objects: int


class FolderSurvey:
    """Lists uppermost folders; topics of more than *large* or unknown objects are split."""

    def __init__(
        self, store: ObjectStore, sorting: SortRules, expected: Mapping[str, int], large: int
    ) -> None:
        self._store = store
        self._sorting = sorting
        self._expected = expected
        self._large = large

    def found(self) -> Iterator[FolderToList | ListedObject]:
        for number, prefix in enumerate(self._sorting.prefixes.all):
            yield from self._below(number, prefix)

    def _below(self, number: int, folder: str) -> Iterator[FolderToList | ListedObject]:
        for one in self._store.level(folder):
            if not isinstance(one, ListedFolder):
                if self._sorting.prefixes.owner(one.key) == number:
                    yield one
            elif not self._is_left_out(number, one.key):
                yield from self._folder(number, one.key, is_parted=folder == self._prefix(number))

    def _folder(
        self, number: int, key: str, *, is_parted: bool
    ) -> Iterator[FolderToList | ListedObject]:
        expected = self._expected.get(key)
        is_topic = read_topic_folder(key, self._prefix(number)) is not None
        is_large = is_topic and (expected is None or expected > self._large)
        holds_prefix = any(one.startswith(key) for one in self._sorting.prefixes.all)
        if holds_prefix or (is_parted and is_large):
            yield from self._below(number, key)
        else:
            yield FolderToList(number, key, UNKNOWN_OBJECTS if expected is None else expected)

    def _is_left_out(self, number: int, key: str) -> bool:
        prefixes = self._sorting.prefixes
        if key in prefixes.all or prefixes.read(f"{key}x") is OtherKey.JOBS:
            return True
        found = read_topic_folder(key, self._prefix(number))
        return found is not None and not self._sorting.topics.wants_topic(found.topic)

    def _prefix(self, number: int) -> str:
        return self._sorting.prefixes.all[number]
