"""`rlmm verify`: whether what the tier is said to hold makes sense."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_options import at_option, output_options, source_options

if TYPE_CHECKING:
    from rlmm.cli.common.source_options import SourceChoice


@click.command("verify")
@source_options
@at_option
@output_options
@click.option("--topic", metavar="REGEX", help="Of these topics alone.")
@click.option("--strict", is_flag=True, help="Exit code 1 for notes, too.")
@click.option(
    "--no-history", is_flag=True,
    help="Do not read the log where copies overlap: quicker, and late finishes are not reported.",
)  # fmt: skip
def verify(asked: SourceChoice, topic: str | None, strict: bool, no_history: bool) -> None:
    """
    Look for holes, overlaps and segments that no look-up finds.

    Goes by the metadata alone: each leader epoch must be covered without a gap from the first
    segment to the last. With --bootstrap-server beside the source, what is tiered is also held
    against the ends of each log: what is neither tiered nor local is named. Objects are looked at
    by `rlmm tier verify`. Nothing is changed. Exit code 1 when something was found that is more
    than a note; every code is explained in docs/findings.md.

    \b
    Examples:
      rlmm verify
      rlmm verify --topic 'orders.*' --bootstrap-server kafka:9092
      rlmm verify --log-dirs /copies/broker-1 --log-dirs /copies/broker-2
      rlmm verify --at 2026-01-31T14:05:00Z --output json
    """
    from rlmm.cli.queries.verify_answer import verify_answer  # noqa: PLC0415  # not for help, completion

    answer(
        asked,
        partial(
            verify_answer, topic=topic, is_strict=strict, reads_history=not no_history
        ),
    )  # fmt: skip
