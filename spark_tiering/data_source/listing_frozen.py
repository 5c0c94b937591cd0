"""What frozen plans hold, as a listing. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError
from spark_tiering.data_source.extents import (
    MissingOffsets,
    PartitionListing,
    TierListing,
    extent_of,
)
from spark_tiering.read_plan.plan import GapReason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from spark_tiering.data_source.options import Subscription
    from spark_tiering.read_plan.plan import FrozenPartition, FrozenPlan, PlanGap

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
    """The partitions of *plan* that are wanted."""
    wanted = [
        one
        for one in plan.partitions
        if subscription.wants(one.partition.topic, one.partition.partition)
    ]
    held = tuple(_held(one) for one in one_of_each_name(wanted, subscription))
    return TierListing(held, plan.token, plan.warnings)


def _held(one: FrozenPartition) -> PartitionListing:
    """
    A partition as far as its plan goes: what was asked below the tier counts as missing, what lies
    behind the tier is not there yet.
    """
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
    """
    Those of the topic ids that are wanted; raises `ConfigError` where a name has several and nobody
    said which: rows of both under the same offsets would be one partition to whoever reads them.
    """
    by_name: dict[tuple[str, int], list[FrozenPartition]] = {}
    for one in partitions:
        wanted_id = subscription.topic_ids.get(one.partition.topic)
        if wanted_id is None or wanted_id == str(one.partition.topic_id):
            by_name.setdefault((one.partition.topic, one.partition.partition), []).append(one)
    _require_ids(partitions, subscription)
    for (topic, _), several in sorted(by_name.items()):
        if len(several) > 1:
            ids = sorted(str(one.partition.topic_id) for one in several)
            msg = (
                f"{len(ids)} topics have had the name {topic}: {', '.join(ids)}; say which one "
                f'with topicIds={{"{topic}": "{ids[0]}"}}'
            )
            raise ConfigError(msg)
    return [several[0] for _, several in sorted(by_name.items())]


def _require_ids(partitions: Iterable[FrozenPartition], subscription: Subscription) -> None:
    """Who mistypes an id is told the ones there are; of a topic that is nowhere others tell."""
    for topic, wanted_id in sorted(subscription.topic_ids.items()):
        ids = {str(one.partition.topic_id) for one in partitions if one.partition.topic == topic}
        if ids and wanted_id not in ids:
            msg = (
                f"topicIds: there is no {topic} of the id {wanted_id}, but {', '.join(sorted(ids))}"
            )
            raise ConfigError(msg)
