"""Options that several queries have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rlmm.cli.common.parameter_types import MOMENT, POSITIVE_TIME, SEGMENT, TIME

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TOPIC = click.option("--topic", metavar="REGEX", help="Of these topics alone.")
TOPIC_PARTITIONS = click.option(
    "--topic-partitions", metavar="PATTERN",
    help="Of these user partitions, as kafka-get-offsets has it: t1:1,t2:0-3,t3,t4:5-,t5:-3 (3 is "
    "not one of 0-3).",
)  # fmt: skip
PLACES = click.option(
    "--partition", "places", multiple=True, type=click.IntRange(0), metavar="N",
    help="Of this metadata partition; may be repeated.",
)  # fmt: skip
BEGIN = click.option("--from", "begin", type=MOMENT, metavar="OFFSET|TIME", help="From then on.")
END = click.option("--to", type=MOMENT, metavar="OFFSET|TIME", help="The same as --at.")
SEGMENT_ID = click.option(
    "--segment-id", type=SEGMENT, metavar="SEGMENT",
    help="The same as an option, for ids that begin with a dash: --segment-id=-abc.",
)  # fmt: skip
PREFIX = click.option(
    "--prefix", default="", metavar="PREFIX",
    help="What brokers put before the keys of objects, `key.prefix` of the storage plugin.",
)  # fmt: skip
STRICT = click.option("--strict", "is_strict", is_flag=True, help="Exit code 1 for notes, too.")


def time_option(
    flag: str, name: str, default: str | None, text: str, *, is_positive: bool = False
) -> Callable[[Any], Any]:
    """Return a flag of a duration, in milliseconds; a default is shown."""
    kind = POSITIVE_TIME if is_positive else TIME
    return click.option(
        flag, name, type=kind, default=default, show_default=True, metavar="TIME", help=text
    )


def count_option(flag: str, name: str, default: int | None, text: str) -> Callable[[Any], Any]:
    """Return a flag of a number from 0 on; a default is shown."""
    kind = click.IntRange(min=0)
    return click.option(
        flag, name, type=kind, default=default, show_default=True, metavar="COUNT", help=text
    )
