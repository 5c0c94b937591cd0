"""The listing of a tier's partitions, from a plan, manifests, or a service's or log's metadata."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError, TierUnreadable
from rlmm.findings import tier_findings as tier_kinds
from spark_tiering.data_source.extents import (
    MissingOffsets,
    PartitionListing,
    TierListing,
    extent_of,
)
from spark_tiering.data_source.places import ListKind
from spark_tiering.read_plan.manifest_units import ManifestContents, ManifestTask, read_manifests
from spark_tiering.read_plan.plan import GapReason
from spark_tiering.read_plan.plan_files import require_plan
from spark_tiering.read_plan.question import Question
from spark_tiering.read_plan.tier_plans import plan_of_manifests, plan_of_moment
from spark_tiering.store_listing.manifests import (
    partition_folders,
    partition_manifests,
    topic_folders,
)
from spark_tiering.stores.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.data_source.options import DataSourceOptions, Subscription
    from spark_tiering.data_source.places import TierLocation
    from spark_tiering.maintenance.tier import CareRequest
    from spark_tiering.read_plan.plan import FrozenPartition, FrozenPlan, PlanGap
    from spark_tiering.store_listing.manifests import ListedManifest
    from spark_tiering.stores.protocol import ObjectStore


_WHY: Final = {
    GapReason.BELOW_LOG_START: "expired: the log begins behind them",
    GapReason.BELOW_TIER: "expired, or never tiered: all that the tier has lies behind them",
    GapReason.BEING_COPIED: "their segment is being copied, or its copy was never finished",
    GapReason.BEING_DELETED: "expired: their segment is being deleted",
    GapReason.OTHER_LINEAGE: "only a leader that was replaced has written them",
    GapReason.MISSING: "no segment of the tier has them",
    GapReason.NOT_TIERED_YET: "not tiered yet",
}


def listing_of_plan(plan: FrozenPlan, subscription: Subscription) -> TierListing:
    wanted = [
        one
        for one in plan.partitions
        if subscription.wants(one.partition.topic, one.partition.partition)
    ]
    held = tuple(_held(one) for one in one_of_each_name(wanted, subscription))
    return TierListing(held, plan.token, plan.warnings)


def _held(one: FrozenPartition) -> PartitionListing:
    """Return a partition as far as its plan goes; offsets below the tier count as missing."""
    extents = tuple(extent_of(segment, one.epochs) for segment in one.segments)
    first = one.asked[0][0] if one.asked else 0
    ends = [extent.next_offset for extent in extents]
    gaps = [_missing(gap) for gap in one.gaps if gap.reason is not GapReason.NOT_TIERED_YET]
    ends += [gap.next_offset for gap in gaps]
    behind = max([first, *ends])
    return PartitionListing(one.partition, first, behind, extents, tuple(gaps))


def _missing(gap: PlanGap) -> MissingOffsets:
    behind = gap.first_offset if gap.next_offset is None else gap.next_offset
    return MissingOffsets(gap.first_offset, behind, _WHY[gap.reason])


def one_of_each_name(
    partitions: Collection[FrozenPartition], subscription: Subscription
) -> list[FrozenPartition]:
    """Return the wanted topic ids; raises `ConfigError` for a name with several ids."""
    by_name: dict[tuple[str, int], list[FrozenPartition]] = {}
    for one in partitions:
        wanted_id = subscription.topic_ids.get(one.partition.topic)
        if wanted_id is None or wanted_id == str(one.partition.topic_id):
            by_name.setdefault((one.partition.topic, one.partition.partition), []).append(one)
    _require_ids(partitions, subscription)
    for (topic, _), several in sorted(by_name.items()):
        require_one_id(topic, {str(one.partition.topic_id) for one in several})
    return [several[0] for _, several in sorted(by_name.items())]


def _require_ids(partitions: Iterable[FrozenPartition], subscription: Subscription) -> None:
    for topic, wanted_id in sorted(subscription.topic_ids.items()):
        ids = {str(one.partition.topic_id) for one in partitions if one.partition.topic == topic}
        if ids and wanted_id not in ids:
            msg = (
                f"topicIds: there is no {topic} of the id {wanted_id}, but {', '.join(sorted(ids))}"
            )
            raise ConfigError(msg)


def require_one_id(topic: str, found: set[str]) -> None:
    """Raise `ConfigError` for a name that several topics have had."""
    if len(found) > 1:
        ids = sorted(found)
        msg = (
            f"{len(ids)} topics have had the name {topic}: {', '.join(ids)}; say which one with "
            f'topicIds={{"{topic}": "{ids[0]}"}}'
        )
        raise ConfigError(msg)


logger = logging.getLogger(__name__)

MANIFESTS_AT_ONCE: Final = 100
READERS: Final = 8


class TierLister:
    """Lists the tier's part of the wanted partitions, at the time of each call; manifests once."""

    def __init__(self, options: DataSourceOptions) -> None:
        self._options = options
        self._known: dict[str, SegmentMetadata] = {}

    def __call__(self) -> TierListing:
        """Return the listing; a broken manifest is an error unless losses are tolerated."""
        return listing_of_plan(self._plan(), self._options.subscription)

    def _plan(self) -> FrozenPlan:
        place = self._options.place
        match place.kind:
            case ListKind.PLAN:
                return _plan_of_file(place)
            case ListKind.MANIFESTS:
                return plan_of_manifests(self._told(), question_of(self._options))
            case _:
                return _plan_of_metadata(place, question_of(self._options))

    def _told(self) -> ManifestContents:
        place = self._options.place
        assert place.store is not None, "a place without log folders has a store"
        with open_store(place.store) as store:
            listed = list(_listed(store, place.prefix, self._options.subscription))
        new = [one for one in listed if one.key not in self._known]
        read = [
            ManifestTask(place.store, place.prefix, tuple(new[at : at + MANIFESTS_AT_ONCE]))
            for at in range(0, len(new), MANIFESTS_AT_ONCE)
        ]
        unread = []
        for told, task in zip(_read_all(read), read, strict=True):
            self._require_told(told)
            keys = {one.name.segment_id: one.key for one in task.manifests}
            self._known.update((keys[one.id], one) for one in told.segments)
            unread += told.unread
        there = [self._known[one.key] for one in listed if one.key in self._known]
        self._known = {one.key: self._known[one.key] for one in listed if one.key in self._known}
        return ManifestContents(there, sorted(unread))

    def _require_told(self, told: ManifestContents) -> None:
        for one in told.unread:
            detail = f"{tier_kinds.MANIFEST_MALFORMED.code}: {one.key}: {one.why}"
            if self._options.fails_on_data_loss:
                msg = f"{detail}; which offsets the segment has is not known without it"
                raise TierUnreadable(msg)
            logger.warning("%s; the records of the segment are left out", detail)


def _read_all(tasks: list[ManifestTask]) -> Iterator[ManifestContents]:
    if len(tasks) < 2:
        yield from map(read_manifests, tasks)
        return
    with ThreadPoolExecutor(READERS) as pool:
        yield from pool.map(read_manifests, tasks)


def _listed(store: ObjectStore, prefix: str, wanted: Subscription) -> Iterator[ListedManifest]:
    names = {topic for topic, _ in wanted.assigned}

    def wants_topic(topic: str) -> bool:
        return topic in names if names else wanted.wants(topic, 0)

    for folder in topic_folders(store, prefix, wants_topic):
        for partition in partition_folders(store, folder):
            if wanted.wants(partition.topic, partition.partition):
                yield from partition_manifests(store, partition, prefix)


def _plan_of_file(place: TierLocation) -> FrozenPlan:
    plan = require_plan(Path(place.plan))
    if place.plan_token and place.plan_token != plan.token:
        msg = f"{place.plan} is another plan than the one of planToken: it has been made anew"
        raise ConfigError(msg)
    return plan


def question_of(options: DataSourceOptions) -> Question:
    wanted = options.subscription
    return Question(
        topics=wanted.topics,
        pattern=wanted.pattern,
        assigned=wanted.assigned,
        prefix=options.place.prefix,
    )


def _plan_of_metadata(place: TierLocation, question: Question) -> FrozenPlan:
    # Large, and not needed for whoever goes by manifests or plans.
    from spark_tiering.maintenance.wiring import open_tier  # noqa: PLC0415

    with open_tier(_request(place)) as tier:
        return plan_of_moment(tier.moment(), question)


def _request(place: TierLocation) -> CareRequest:
    from rlmm.state_sources.settings import SourceSettings  # noqa: PLC0415 - see above
    from spark_tiering.maintenance.tier import CareRequest  # noqa: PLC0415

    if place.sidecar is None:
        if not Path(place.embedded).is_dir():
            msg = f"the embedded log {place.embedded} is not there"
            raise ConfigError(msg)
        return CareRequest(embedded=Path(place.embedded))
    at = place.sidecar
    return CareRequest(
        source=SourceSettings(
            sidecar=at.address,
            cluster_id=at.cluster_id,
            token_file=Path(at.token_file) if at.token_file else None,
            is_tls=at.is_tls,
            is_plaintext_token=at.is_plaintext_token,
            ca_file=Path(at.ca_file) if at.ca_file else None,
            certificate_file=Path(at.certificate_file) if at.certificate_file else None,
            key_file=Path(at.key_file) if at.key_file else None,
        )
    )
