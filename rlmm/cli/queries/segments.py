"""`rlmm segments`: list segments, describe one, find the one with an offset."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from rlmm.cli.common.parameter_types import PARTITION, SEGMENT, SIZE, WHEN
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_options import at_option, output_options, source_options

if TYPE_CHECKING:
    from collections.abc import Collection

    from rlmm.cli.common.source_options import SourceChoice
    from rlmm.inspection.segment_search import SegmentFilter
    from rlmm.inspection.selectors import PartitionLabel, SegmentLabel

_STATES = ("COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED")
_ORDERS = ("start", "last", "size", "newest", "event", "broker", "state", "epoch")
_PREFIX = click.option(
    "--prefix", default="", metavar="PREFIX",
    help="What brokers put before the keys of objects, `key.prefix` of the storage plugin.",
)  # fmt: skip


@click.group("segments")
def segments() -> None:
    """List segments, describe one, find the one that holds an offset."""


@segments.command("list")
@source_options
@at_option
@output_options
@click.option("--topic", metavar="REGEX", help="Of topics with such a name.")
@click.option(
    "--topic-partitions",
    metavar="PATTERN",
    help="Of these user partitions, as kafka-get-offsets has it: t1:1,t2:0-3,t3,t4:5-,t5:-3 (3 is "
    "not one of 0-3).",
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES, case_sensitive=False),
    help="In this state; may be repeated.",
)
@click.option(
    "--from", "newest_from_ms", type=WHEN, metavar="TIME", help="Whose newest record is not older."
)
@click.option(
    "--to", "newest_to_ms", type=WHEN, metavar="TIME", help="Whose newest record is not younger."
)
@click.option(
    "--min-size", "size_min", type=SIZE, metavar="SIZE", help="Of 10MiB at least, for example."
)
@click.option("--max-size", "size_max", type=SIZE, metavar="SIZE", help="Of so many bytes at most.")
@click.option(
    "--broker",
    "brokers",
    multiple=True,
    type=int,
    metavar="ID",
    help="Whose last event this broker wrote; may be repeated.",
)
@click.option("--epoch", type=click.IntRange(0), help="With offsets of this leader epoch.")
@click.option(
    "--with-custom-metadata/--without-custom-metadata",
    "has_custom_metadata",
    default=None,
    help="That have custom metadata, or have none.",
)
@click.option(
    "--sort",
    "order",
    type=click.Choice([*_ORDERS, *(f"-{one}" for one in _ORDERS)]),
    metavar="[-]ORDER",
    help=f"By {', '.join(_ORDERS)}; with a dash the largest first: --sort=-size. Else by partition "
    "and offset. All that are meant are held at once, unless --limit says how many.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="No more than these.")
def list_command(
    asked: SourceChoice, *, order: str | None, limit: int | None, **meant: Any
) -> None:
    """
    List segments, with sums below.

    They come as they are found, by topic, partition and start offset. LAST is the last offset,
    inclusive; times are those of a segment's newest record.

    \b
    Examples:
      rlmm segments list --topic 'orders.*'
      rlmm segments list --topic-partitions orders:0-3 --state copy_segment_started
      rlmm segments list --sort=-size --limit 10
      rlmm segments list --from -7d --output csv > week.csv
      rlmm segments list --at 2026-01-31T14:05:00Z --output json
    """
    from rlmm.cli.queries.segments_answer import list_answer  # noqa: PLC0415  # not for help

    answer(asked, partial(list_answer, wanted=_filter_of(**meant), order=order, limit=limit))


def _filter_of(
    *, topic: str | None, topic_partitions: str | None, states: Collection[str],
    brokers: Collection[int], **others: Any,
) -> SegmentFilter:  # fmt: skip
    from rlmm.inspection.segment_search import STATES, SegmentFilter  # noqa: PLC0415  # not for help
    from rlmm.inspection.selectors import partition_filter  # noqa: PLC0415
    from rlmm.metadata.segment import SegmentState  # noqa: PLC0415

    return SegmentFilter(
        partition_filter(topic, topic_partitions),
        frozenset(SegmentState[one] for one in states) or frozenset(STATES),
        brokers=frozenset(brokers),
        **others,
    )


@segments.command("describe")
@source_options
@at_option
@output_options
@click.argument("segment", type=SEGMENT, required=False)
@click.option(
    "--segment-id",
    type=SEGMENT,
    metavar="SEGMENT",
    help="The same as an option, for ids that begin with a dash: --segment-id=-abc.",
)
@_PREFIX
def describe_command(
    asked: SourceChoice,
    *,
    segment: SegmentLabel | None,
    segment_id: SegmentLabel | None,
    prefix: str,
) -> None:
    """
    Show all that is known of one segment: state, offsets, epochs, objects, and what look-ups say.

    SEGMENT is an id of 22 characters or what no other one begins with. With its partition before
    it, orders-3/ID, only that one is asked for; an id that begins with a dash stands behind --.

    \b
    Examples:
      rlmm segments describe EBESExQVFhcYGRobHB0eHw
      rlmm segments describe orders-3/EBES
      rlmm segments describe -- -BESExQVFhcYGRobHB0eHw
      rlmm segments describe --segment-id=-BESExQVFhcYGRobHB0eHw --output yaml
    """
    from rlmm.cli.queries.segment_answer import describe_answer  # noqa: PLC0415  # not for help

    label = segment or segment_id
    if label is None or (segment and segment_id):
        raise click.UsageError("Name one segment, as SEGMENT or by --segment-id.")
    answer(asked, partial(describe_answer, label=label, prefix=prefix))


@segments.command("find")
@source_options
@at_option
@output_options
@click.argument("user_partition", type=PARTITION, metavar="TOPIC-PARTITION")
@click.option("--offset", type=click.IntRange(0), help="The segment that holds it.")
@click.option(
    "--time",
    "time_ms",
    type=WHEN,
    metavar="TIME",
    help="The first segment with records of that time or later.",
)
@click.option("--epoch", type=click.IntRange(0), help="In this leader epoch; else in any.")
@_PREFIX
def find_command(
    asked: SourceChoice, *, user_partition: PartitionLabel, offset: int | None, time_ms: int | None,
    epoch: int | None, prefix: str,
) -> None:  # fmt: skip
    """
    Show which segment of TOPIC-PARTITION holds an offset, or a time, and where its objects are.

    Without --epoch it is said in which leader epochs it is found. Segments that hold the offset and
    are found by no look-up are shown as well: copies under way, deletions, hidden ones. By time a
    segment is as close as it gets. Exit code 1 when no look-up finds any.

    \b
    Examples:
      rlmm segments find orders-3 --offset 1500
      rlmm segments find orders-3 --offset 1500 --epoch 4 --prefix tiered/
      rlmm segments find orders-3 --time 2026-01-31T14:05:00Z
      rlmm segments find AAECAwQFBgcICQoLDA0ODw:orders-3 --time -7d --output json
    """
    from rlmm.cli.queries.segment_answer import find_answer  # noqa: PLC0415  # not for help

    if (offset is None) == (time_ms is None):
        raise click.UsageError("Say what to find, with --offset or with --time.")
    answer(
        asked,
        partial(
            find_answer, label=user_partition, offset=offset, time_ms=time_ms, epoch=epoch,
            prefix=prefix,
        ),
    )  # fmt: skip
