"""`rlmm usage`: where the bytes of the tier are, and what they cost."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from rlmm.cli.common.parameter_types import TIME
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_options import at_option, output_options, source_options

if TYPE_CHECKING:
    from rlmm.cli.common.source_options import SourceChoice


@click.command("usage")
@source_options
@at_option
@output_options
@click.option("--topic", metavar="REGEX", help="Of these topics alone.")
@click.option(
    "--by",
    "grouping",
    type=click.Choice(["topic", "state", "epoch", "age"]),
    default="topic",
    show_default=True,
    help="What sums are made by.",
)
@click.option(
    "--due-within",
    type=TIME,
    default="24h",
    show_default=True,
    metavar="TIME",
    help="What retention will delete by then; its settings are the cluster's.",
)
@click.option(
    "--copy-older-than",
    type=TIME,
    default="1h",
    show_default=True,
    metavar="TIME",
    help="A copy that is open for longer is waste.",
)
@click.option(
    "--price-gib-month",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="PRICE",
    help="What storage costs you, in your money.",
)
@click.option("--price-put-thousand", type=click.FloatRange(min=0), default=0.0, metavar="PRICE",
              help="What a thousand writing requests cost you.")  # fmt: skip
def usage(
    asked: SourceChoice,
    topic: str | None,
    grouping: str,
    due_within: int,
    copy_older_than: int,
    price_gib_month: float,
    price_put_thousand: float,
) -> None:
    """
    Sum up bytes and segments, waste, what goes soon, and cost.

    Waste is copies that were never finished and segments that no look-up finds. With
    --bootstrap-server beside the source, retention is reckoned by the topics' own settings, and it
    is said which retention of the metadata topic would be safe.

    \b
    Examples:
      rlmm usage
      rlmm usage --by age --topic 'orders.*'
      rlmm usage --bootstrap-server kafka:9092 --due-within 7d
      rlmm usage --price-gib-month 0.023 --price-put-thousand 0.005 --output csv
    """
    from rlmm.cli.queries.usage_answer import usage_answer  # noqa: PLC0415  # not for help, completion

    answer(
        asked,
        partial(
            usage_answer, topic=topic, grouping=grouping, due_within_ms=due_within,
            copy_open_ms=copy_older_than, gib_month=price_gib_month,
            put_thousand=price_put_thousand,
        ),
    )  # fmt: skip
