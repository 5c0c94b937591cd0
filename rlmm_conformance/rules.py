"""The named rules: every way in which rlmm may differ from Kafka, each a switch of the model."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

Rules = frozenset["ConformanceRule"]


class ConformanceRule(StrEnum):
    """A named rule; reports list rules in this order."""

    KAFKA_20932 = "kafka-20932"
    COVER_LOOKUP = "cover-lookup"
    COVER_NEXT_TXN = "cover-next-txn"
    SHARD_HOLDS_ALL = "shard-holds-all"
    NO_DANGLING_IDS = "no-dangling-ids"


@dataclass(frozen=True, slots=True)
class RuleText:
    """The text of one rule: both behaviours, the reason, a smallest history."""

    title: str
    kafka: str
    rlmm: str
    reason: str
    example: str


RULE_TEXTS: dict[ConformanceRule, RuleText] = {
    ConformanceRule.KAFKA_20932: RuleText(
        title="a finished segment that loses its slot stays in the epoch's listing",
        kafka=(
            "When a segment finishes and its slot (its first offset in the epoch) is taken by "
            "another segment, the other one is overwritten: it leaves the listing and the size of "
            "the epoch, though it still exists."
        ),
        rlmm=(
            "The overwritten segment moves to the unreferenced ids of the epoch, as the fix "
            "proposed upstream for KAFKA-20932 does: it stays in the listing and the size of the "
            "epoch until it is deleted."
        ),
        reason=(
            "Retention deletes what the listing of an epoch shows; what it does not show is never "
            "deleted."
        ),
        example=(
            "Epoch 0; finished in this order: a = 0-100, b = 101-200, c = 0-150. Listing of epoch "
            "0: Kafka c, b; rlmm c, a, b."
        ),
    ),
    ConformanceRule.COVER_LOOKUP: RuleText(
        title="an offset that some finished segment covers is found",
        kafka=(
            "A lookup tries one candidate, the slot at or before the offset. If that segment ends "
            "before the offset, or the slot is gone, the answer is nothing, even where another "
            "finished segment covers the offset."
        ),
        rlmm=(
            "The slots are asked first and their answer stands. Only when they find nothing, a "
            "finished segment is answered that lists the epoch and covers the offset in it (from "
            "the offset it lists for the epoch to its end in that epoch); of several, the one "
            "whose last finish event came last."
        ),
        reason=(
            "Data that exists must not be reported as absent; wherever Kafka finds a segment, the "
            "same one is found."
        ),
        example=(
            "Epoch 0; a = 0-200 finished, then b = 0-100 finished late. Lookup of offset 150: "
            "Kafka nothing; rlmm a."
        ),
    ),
    ConformanceRule.COVER_NEXT_TXN: RuleText(
        title=(
            "the search for a transaction index does not stop at a hole that a finished segment "
            "covers"
        ),
        kafka=(
            "The search goes from segment to segment by plain lookups, and ends with nothing at "
            "the first offset that the slots do not find."
        ),
        rlmm="The same walk, with the cover-aware lookup at every stop.",
        reason=(
            "A reader of committed data would otherwise miss aborted transactions of a segment "
            "that exists."
        ),
        example=(
            "Epoch 0; a = 0-200 with a transaction index finished, then b = 0-100 without one "
            "finished late. Next segment with a transaction index from offset 50: Kafka nothing; "
            "rlmm a."
        ),
    ),
    ConformanceRule.SHARD_HOLDS_ALL: RuleText(
        title="events of user partitions that are not loaded are kept",
        kafka=(
            "An event for a partition that is not loaded is an illegal state. Clearing a partition "
            "drops its segments; loaded again it is empty until its metadata partition has been "
            "read again from the beginning."
        ),
        rlmm=(
            "The event is stored with its verdict. Clearing only makes the partition not loaded; "
            "loaded again it shows everything at once, though it must be initialised again before "
            "it answers. A finished partition deletion drops the content, as in Kafka, and makes "
            "the partition not loaded; later events are stored."
        ),
        reason=(
            "One pass over a metadata partition serves all its user partitions; no assignment "
            "forces a re-read."
        ),
        example=(
            "Nothing loaded; segment a is added: Kafka illegal state; rlmm applied. Then load, "
            "mark initialised, list: rlmm a."
        ),
    ),
    ConformanceRule.NO_DANGLING_IDS: RuleText(
        title="a deleted segment leaves every epoch that still lists it",
        kafka=(
            "A segment record repeated with other epochs leaves the id with the old epochs too. "
            "The finished deletion removes it from its present epochs only: listing or sizing an "
            "old epoch fails with not found for ever."
        ),
        rlmm="The finished deletion removes the id from every epoch that still lists it.",
        reason=(
            "One odd pair of records must not make an epoch unlistable, which would stop its "
            "retention for ever."
        ),
        example=(
            "a is added with epochs {0: 0}, added again with {1: 0}, then its deletion starts and "
            "finishes. Listing of epoch 0: Kafka not found; rlmm empty."
        ),
    ),
}


def ordered(rules: Rules) -> tuple[ConformanceRule, ...]:
    return tuple(rule for rule in ConformanceRule if rule in rules)
