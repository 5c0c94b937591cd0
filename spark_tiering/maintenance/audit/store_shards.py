"""Store shards: the objects of a listing or an inventory, on disk by shard. I/O."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from rlmm import errors
from rlmm.base.closing import ClosedByWith
from rlmm.errors import ConfigError, EngineUnfit, RlmmError, StoreUnavailable, StoreUnsuitable
from spark_tiering.execution.protocol import UnitLost
from spark_tiering.maintenance.audit.report import OpenUploads, inventory_text
from spark_tiering.reporting.progress import Meter
from spark_tiering.store_listing.inventory_files import place_of, read_inventory
from spark_tiering.store_listing.key_names import Prefixes, shown
from spark_tiering.store_listing.listing_tasks import (
    FolderSurvey,
    FolderToList,
    InventoryTask,
    ListingResult,
    ListTask,
    SortRules,
    UnrecognizedKeys,
    look_into,
    sort_objects,
)
from spark_tiering.store_listing.rows import RowBlob, shards_for
from spark_tiering.stores.s3_settings import S3Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from rlmm.inspection.moment import PartitionSummary
    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.execution.protocol import ExecutionEngine
    from spark_tiering.maintenance.audit.object_set_verdict import AuditRules
    from spark_tiering.maintenance.tier import Tier
    from spark_tiering.store_listing.inventory import Inventory
    from spark_tiering.store_listing.inventory_files import InventoryPlace
    from spark_tiering.store_listing.key_names import OtherKey
    from spark_tiering.stores.results import ListedObject

_SIZE = struct.Struct(">Q")


class RowSpill(ClosedByWith):
    """A folder of its own, removed at the end. A part's blobs are files of one name each."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rlmm-audit-")

    def close(self) -> None:
        self._folder.cleanup()

    def file(self, name: str) -> Path:
        return Path(self._folder.name) / name

    def add(self, name: str, blobs: Mapping[int, bytes]) -> None:
        for shard, blob in blobs.items():
            with self.file(f"{name}-{shard}").open("ab") as file:
                file.write(_SIZE.pack(len(blob)))
                file.write(blob)

    def read(self, name: str, shard: int) -> Iterator[bytes]:
        """Return the blobs of a shard; none where there are none."""
        path = self.file(f"{name}-{shard}")
        if not path.exists():
            return
        with path.open("rb") as file:
            while head := file.read(_SIZE.size):
                yield file.read(_SIZE.unpack(head)[0])

    def remove(self, name: str, shard: int) -> None:
        self.file(f"{name}-{shard}").unlink(missing_ok=True)


UNIT_OBJECTS: Final = 30_000
"""A unit handles about so many objects."""
ROW_BYTES: Final = 30
"""The bytes of a row in a file of an inventory, estimated low."""
BETWEEN_MAX: Final = 10_000
"""Objects outside of topic folders that are sorted at a time."""
OBJECTS_OF_SEGMENT: Final = 3
EXAMPLES_MAX: Final = 10
FOUND: Final = "objects found"


class StoreShards:
    """Sorts the objects of the store; rows are on disk, in *spill*, as `objects`."""

    def __init__(
        self, tier: Tier, spill: RowSpill, prefixes: Prefixes, meter: Meter | None = None
    ) -> None:
        self._meter = meter or Meter()
        self._found = FOUND
        self._tier = tier
        self._spill = spill
        self._prefixes = prefixes
        self.sorting = SortRules(prefixes, shards_for(0, 1, 1), tier.request.topics)
        self.source = ""
        self.objects = 0
        self.partitions: set[TopicIdPartition] = set()
        self.others: dict[OtherKey, UnrecognizedKeys] = {}
        self.noncurrent = UnrecognizedKeys()
        self.stopped = ""

    def by_listing(
        self, known: list[PartitionSummary], why_stop: Callable[[], str], unit_objects: int
    ) -> None:
        """List the prefixes; *known* gives the expected number of objects."""
        self.source = "a listing of the store"
        expected = self._expected(known)
        self._sort_into(sum(expected.values()), unit_objects)
        survey = FolderSurvey(self._tier.store, self.sorting, expected, unit_objects)
        units = self._list_units(survey, unit_objects)
        self.stopped = run_waves(self._tier.engine(), units, look_into, self._heard, why_stop)

    def _expected(self, known: list[PartitionSummary]) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for one in known:
            partition = one.partition
            folder = f"{self._prefixes.all[0]}{partition.topic}-{partition.topic_id}/"
            found[folder] = found.get(folder, 0) + OBJECTS_OF_SEGMENT * one.segments
        return found

    def _list_units(
        self, survey: FolderSurvey, unit_objects: int
    ) -> Iterator[tuple[ListTask, int]]:
        folders: list[tuple[int, str]] = []
        between: list[ListedObject] = []
        objects = 0
        for one in survey.found():
            if not isinstance(one, FolderToList):
                between.append(one)
                if len(between) >= BETWEEN_MAX:
                    self._between(between)
                continue
            folders.append((one.prefix, one.folder))
            # A request is worth as much as the keys of a page, even where there are none.
            objects += max(one.objects, 1_000)
            if objects >= unit_objects:
                yield self._list_unit(folders), objects
                folders, objects = [], 0
        self._between(between)
        if folders:
            yield self._list_unit(folders), objects

    def _list_unit(self, folders: list[tuple[int, str]]) -> ListTask:
        return ListTask(self._tier.request.require_store, tuple(folders), self.sorting)

    def _between(self, objects: list[ListedObject]) -> None:
        looked = ListingResult()
        sort_objects(objects, self.sorting, looked)
        self._heard(looked)
        objects.clear()

    def by_inventory(
        self,
        place: InventoryPlace,
        inventory: Inventory,
        why_stop: Callable[[], str],
        unit_objects: int,
    ) -> None:
        self.source = inventory_text(str(place), inventory.created_ms)
        total = sum(one.size_bytes for one in inventory.files)
        self._sort_into(total // ROW_BYTES, unit_objects)
        units = (
            (InventoryTask(place, inventory, one, self.sorting), one.size_bytes // ROW_BYTES)
            for one in inventory.files
        )
        self.stopped = run_waves(self._tier.engine(), units, look_into, self._heard, why_stop)

    def _sort_into(self, objects: int, unit_objects: int) -> None:
        if objects:
            self._found = f"{FOUND}, about {objects} expected"
        shards = shards_for(objects, unit_objects, 1_024)
        self.sorting = SortRules(self._prefixes, shards, self._tier.request.topics)

    def _heard(self, looked: ListingResult) -> None:
        self._spill.add("objects", looked.blobs)
        for blob in looked.blobs.values():
            self.partitions.update(RowBlob(blob).partitions)
        self.objects += looked.objects
        if looked.objects:
            self._meter.add(self._found, looked.objects)
        for kind, others in looked.others.items():
            self.others.setdefault(kind, UnrecognizedKeys()).join(others)
        self.noncurrent.join(looked.noncurrent)


def open_inventory(tier: Tier, address: str) -> tuple[InventoryPlace, Inventory]:
    """Open the named inventory. Raise `ConfigError` where it is of another bucket."""
    place = place_of(address, tier.request.store)
    inventory = read_inventory(place)
    store = tier.request.store
    if isinstance(store, S3Settings) and inventory.bucket != store.bucket:
        msg = f"{place} is an inventory of bucket {inventory.bucket!r}, not of {store.bucket!r}"
        raise ConfigError(msg)
    return place, inventory


def open_uploads(tier: Tier, prefixes: Prefixes, rules: AuditRules) -> OpenUploads:
    """Return the open uploads under the prefixes, also those of job records."""
    count, old, why = 0, 0, ""
    examples: list[str] = []
    try:
        for number, prefix in enumerate(prefixes.all):
            for one in tier.store.open_uploads(prefix):
                if prefixes.owner(one.key) != number:
                    continue
                count += 1
                if rules.is_old(one.began_ms):
                    old += 1
                    if len(examples) < EXAMPLES_MAX:
                        examples.append(shown(one.key))
    except StoreUnsuitable as error:
        why = str(error)
    return OpenUploads(count, old, tuple(examples), why)


OBJECTS: Final = 1_000_000
"""Objects of one wave, unless slots would have no work."""

U = TypeVar("U")


class UnitResult(Protocol):
    @property
    def fault(self) -> tuple[str, str] | None: ...


F = TypeVar("F", bound=UnitResult)


def run_waves(
    engine: ExecutionEngine,
    units: Iterable[tuple[U, int]],
    fn: Callable[[U], F],
    on_result: Callable[[F], None],
    why_stop: Callable[[], str],
) -> str:
    """Run *units*, each with its number of objects; return why it stopped. Raise a unit's error."""
    wave: list[U] = []
    objects, most = 0, max(OBJECTS, 60_000 * engine.slots)
    for unit, size in units:
        if why := why_stop():
            return why
        wave.append(unit)
        objects += size
        if objects >= most:
            _run(engine, wave, fn, on_result)
            wave, objects = [], 0
    why = why_stop()
    if wave and not why:
        _run(engine, wave, fn, on_result)
    return why


def _run(
    engine: ExecutionEngine, wave: list[U], fn: Callable[[U], F], on_result: Callable[[F], None]
) -> None:
    def heard(outcome: F | UnitLost) -> None:
        if isinstance(outcome, UnitLost):
            raise EngineUnfit(f"a unit of the audit was lost: {outcome.why}")
        if outcome.fault is not None:
            raise_fault(*outcome.fault)
        on_result(outcome)

    engine.run_units(wave, fn, heard)


def raise_fault(code: str, text: str) -> None:
    """Raise the error of a unit, as the class that its code names."""
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, RlmmError) and kind.code == code:
            raise kind(text)
    raise StoreUnavailable(text)
