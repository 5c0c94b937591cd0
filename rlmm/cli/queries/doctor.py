"""`rlmm doctor`: settings and rights that will hurt."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_options import output_options, source_options

if TYPE_CHECKING:
    from rlmm.cli.common.source_options import SourceChoice


@click.command("doctor")
@source_options
@output_options
@click.option("--strict", is_flag=True, help="Exit code 1 for notes, too.")
def doctor(asked: SourceChoice, strict: bool) -> None:
    """
    Examine the settings of the metadata topic, brokers and topics.

    Asks the cluster, so --bootstrap-server is needed: replicas, min.insync.replicas, cleanup
    policy and retention of the metadata topic, its partition count against what brokers reckon
    with, settings of brokers and tiered topics that contradict one another, and what these
    credentials may do. Each finding has its reason and its fix. Nothing is ever changed. Exit code
    1 when something was found that is more than a note; every code is explained in
    docs/findings.md.

    \b
    Examples:
      rlmm doctor --bootstrap-server kafka:9092
      rlmm doctor --bootstrap-server kafka:9092 --command-config client.properties --output json
    """
    from rlmm.cli.queries.doctor_answer import doctor_answer  # noqa: PLC0415  # not for help, completion

    answer(asked, partial(doctor_answer, is_strict=strict))
