"""`rlmm rehearse-compaction`: what KIP-1266's cleaner would leave of the metadata topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET

from rlmm.cli.common.answer_header import LogHead, Notes, log_fields, note_lines
from rlmm.cli.common.exit_codes import EXIT_FOUND
from rlmm.cli.common.option_kinds import switch, time_option
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_choice import past_query
from rlmm.cli.printing.answer import Column, CommandAnswer, ValueFormat
from rlmm.errors import InvalidArgument, LogError
from rlmm.inspection.compaction_rehearsal import (
    FOR_EVER,
    LEVELS,
    CleaningEffect,
    CompactionOutlook,
    RehearsalTopic,
    rehearse,
)
from rlmm.log.files.log_folder import TOPIC
from rlmm.retention.retention import number
from rlmm.views.segment import SegmentView, segment_view
from rlmm.views.values import ViewObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.inspection.compaction_rehearsal import CleaningRehearsal, CompactionHarm, FeatureLevel
    from rlmm.views.values import View


class LevelView(ViewObject):
    """The records that a level of the feature would leave and lose."""

    level: int
    cleanup_policy: str
    keys: str
    outlook: CompactionOutlook
    wait_until_ms: int | None
    records: int
    kept: int
    without_key: int
    lost: int
    changed: int
    resurrected: int
    lost_bytes: int


class HarmView(ViewObject):
    """A segment that a level of the feature would lose, change or bring back."""

    level: int
    keys: str
    effect: CleaningEffect
    metadata_partition: int
    segment: SegmentView


class RehearsalHead(LogHead):
    retention_ms: int
    metadata_partitions: list[int]
    notes: Notes = UNSET


_LEVEL_COLUMNS = (
    Column("level", "LEVEL", ValueFormat.NUMBER),
    Column("cleanup_policy", "POLICY"),
    Column("keys", "KEYS"),
    Column("outlook", "OUTLOOK"),
    Column("records", "RECORDS", ValueFormat.NUMBER),
    Column("kept", "KEPT", ValueFormat.NUMBER),
    Column("lost", "LOST", ValueFormat.NUMBER),
    Column("changed", "CHANGED", ValueFormat.NUMBER),
    Column("resurrected", "BACK", ValueFormat.NUMBER),
    Column("without_key", "WITHOUT KEY", ValueFormat.NUMBER, is_extra=True),
    Column("lost_bytes", "LOST BYTES", ValueFormat.SIZE, is_extra=True),
    Column("wait_until_ms", "WAIT UNTIL", ValueFormat.TIME, is_extra=True),
)
_SEGMENT_COLUMNS = (
    Column("level", "LEVEL", ValueFormat.NUMBER),
    Column("keys", "KEYS"),
    Column("effect", "EFFECT"),
    Column("segment.topic", "TOPIC"),
    Column("segment.partition", "PARTITION", ValueFormat.NUMBER),
    Column("segment.segment_id", "SEGMENT"),
    Column("segment.start_offset", "START", ValueFormat.NUMBER, is_extra=True),
    Column("segment.last_offset", "LAST", ValueFormat.NUMBER, is_extra=True),
    Column("segment.size_bytes", "SIZE", ValueFormat.SIZE, is_extra=True),
)
_WORST = (CompactionOutlook.UNSAFE, CompactionOutlook.WAIT, CompactionOutlook.SAFE)


async def rehearsal_answer(
    looking: QueryContext, *, partitions: str | None, retention_ms: int | None, shows_segments: bool
) -> CommandAnswer:
    log, notes = looking.source.log, list[str]()
    identity = await log.identity(timeout_s=looking.timeout_s)
    places = _places(partitions, identity.partition_count)
    if retention_ms is None:
        retention_ms = await _told_retention_ms(looking, notes)
    bound = looking.bound_of(places)
    now_ms = looking.now_ms if bound.time_ms is None else bound.time_ms
    topic = RehearsalTopic(now_ms, retention_ms, bound)
    done: dict[FeatureLevel, list[CleaningRehearsal]] = {level: [] for level in LEVELS}
    for place in places:
        for level in LEVELS:
            done[level].append(
                await rehearse(
                    log, place, level, topic, timeout_s=looking.timeout_s,
                    progress=looking.progress,
                )
            )  # fmt: skip
    items: list[LevelView] | list[HarmView] = (
        [
            _harm_view(level, harm)
            for level, found in done.items()
            for one in found
            for harm in one.harms
        ]
        if shows_segments
        else [_level_view(level, found) for level, found in done.items()]
    )
    is_harmed = any(one.harms for found in done.values() for one in found)
    head = RehearsalHead(
        **log_fields(looking, identity),
        retention_ms=retention_ms,
        metadata_partitions=places,
        notes=notes or UNSET,
    )
    return CommandAnswer(
        "rehearsal-segments" if shows_segments else "rehearsal",
        _SEGMENT_COLUMNS if shows_segments else _LEVEL_COLUMNS,
        items,
        head=head,
        summary=_summary,
        exit_code=EXIT_FOUND if is_harmed else 0,
    )


def _summary(document: View) -> Iterator[str]:
    yield from note_lines(document)
    yield "keys: as they are written today, and as two proposals would write them"


def _places(text: str | None, count: int) -> list[int]:
    if text is None:
        return list(range(count))
    try:
        places = sorted({int(one) for one in text.split(",")})
    except ValueError as error:
        msg = f"--partitions {text!r} is no list of numbers: 0,1,2 is one"
        raise InvalidArgument(msg) from error
    if not 0 <= places[0] <= places[-1] < count:
        msg = f"--partitions {text!r}: the metadata topic has {count} partitions, from 0 on"
        raise InvalidArgument(msg)
    return places


async def _told_retention_ms(looking: QueryContext, notes: list[str]) -> int:
    cluster = looking.source.cluster
    if cluster is not None:
        try:
            topics = await cluster.topics([TOPIC])
        except LogError as error:
            notes.append(f"the settings of the metadata topic are not known: {error}")
        else:
            told = number(topics[TOPIC].setting("retention.ms")) if TOPIC in topics else None
            if told is not None:
                return told
    notes.append("retention.ms of the metadata topic is taken to be unlimited; see --retention")
    return FOR_EVER


def _level_view(level: FeatureLevel, found: Sequence[CleaningRehearsal]) -> LevelView:
    harms = [harm for one in found for harm in one.harms]
    outlook = next(one for one in _WORST if any(each.outlook is one for each in found))
    waits = [one.wait_until_ms for one in found if one.wait_until_ms is not None]

    def count(effect: CleaningEffect) -> int:
        return sum(harm.effect is effect for harm in harms)

    return LevelView(
        level=level.number,
        cleanup_policy=level.policy,
        keys=str(level.keys),
        outlook=outlook,
        wait_until_ms=max(waits) if waits and outlook is CompactionOutlook.WAIT else None,
        records=sum(one.records for one in found),
        kept=sum(one.kept for one in found),
        without_key=sum(one.without_key for one in found),
        lost=count(CleaningEffect.LOST),
        changed=count(CleaningEffect.CHANGED),
        resurrected=count(CleaningEffect.RESURRECTED),
        lost_bytes=sum(
            one.segment.size_bytes for one in harms if one.effect is CleaningEffect.LOST
        ),
    )


def _harm_view(level: FeatureLevel, harm: CompactionHarm) -> HarmView:
    return HarmView(
        level=level.number,
        keys=str(level.keys),
        effect=harm.effect,
        metadata_partition=harm.metadata_partition,
        segment=segment_view(harm.segment),
    )


@click.command("rehearse-compaction")
@past_query
@click.option(
    "--partitions", metavar="0,1,2", help="These metadata partitions alone; else all of them."
)
@time_option(
    "--retention",
    "retention_ms",
    None,
    "`retention.ms` of the metadata topic; else as the cluster says, else unlimited.",
)
@switch("--segments", "One row for each segment that is harmed.", "shows_segments")
def rehearse_compaction(asked: SourceChoice, **flags: Any) -> None:
    """
    Play the log cleaner through, before anyone turns compaction on.

    KIP-1266 moves the metadata topic from deletion to compaction in three levels. The cleaner goes
    by keys, and brokers write none so far. Here the real records are cleaned as each level would,
    what is left is replayed as a broker does, and each segment that would be lost, changed or back
    again is counted: on the topic as it is, and for the last level also as if the records had been
    written with the keys of either proposal. Nothing is changed. Exit code 1 when a level would
    harm anything.

    \b
    Examples:
      rlmm rehearse-compaction --bootstrap-server kafka:9092
      rlmm rehearse-compaction --log-dirs /copies/broker-1 --retention 90d
      rlmm rehearse-compaction --partitions 3 --segments --output csv
    """
    answer(asked, rehearsal_answer, **flags)
