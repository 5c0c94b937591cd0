"""Options that several queries have in common."""

from __future__ import annotations

import click

from rlmm.cli.common.option_kinds import switch
from rlmm.cli.common.parameter_types import MOMENT, SEGMENT

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
STRICT = switch("--strict", "Exit code 1 for notes, too.", "is_strict")
