"""`rlmm explain`: why an offset is found in the tier, or is not, and what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rlmm.cli.common.option_kinds import file_option, switch, text_option
from rlmm.cli.common.parameter_types import POSITION
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_choice import past_query

if TYPE_CHECKING:
    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.inspection.selectors import PartitionLabel

_OF_BUCKETS = ("endpoint", "region", "profile", "path_style", "store_ca_file", "requester_pays")


@click.command("explain")
@past_query
@click.argument("position", type=POSITION, metavar="TOPIC-PARTITION@OFFSET")
@click.option("--epoch", type=click.IntRange(0), help="Looked up in this leader epoch.")
@text_option(
    "--prefix",
    "PREFIX",
    "What brokers put before the keys of objects, `key.prefix` of the storage plugin.",
)
@switch("--no-history", "Do not read the log: quicker, without the history.")
@switch("--check-objects", "Look whether the objects are whole.")
@text_option(
    "--store",
    "s3://BUCKET/PREFIX|FOLDER",
    "Where the objects are; a prefix is put before keys as it is, with its slash.",
)
@text_option("--endpoint", "URL", "Of a store that is not Amazon's.")
@text_option("--region", None, "Of the bucket; else as boto3 finds it.")
@text_option("--profile", None, "Of the files that boto3 reads.")
@switch("--path-style", "Bucket in the path, not in the host name.")
@file_option("--store-ca-file", "Authorities for the endpoint.")
@switch("--requester-pays", "The bucket's requests are paid by us.")
@switch(
    "--read-objects", "Also read log and indexes where the store does not tell their checksums."
)
def explain(
    asked: SourceChoice, *, position: tuple[PartitionLabel, int], epoch: int | None, prefix: str,
    no_history: bool, check_objects: bool, store: str, read_objects: bool, **bucket: str | bool,
) -> None:  # fmt: skip
    """
    Explain why an offset is found in the tier, or is not, and what becomes of it.

    One screen: the segment that holds it and how the look-up got there, what a stock broker would
    find, who wrote it and when, where its objects are, and what retention does next.

    Where nothing is found it is said why: a hole, an unknown leader epoch, a copy that is not
    finished, a deletion and who did it, a topic that was made again, the beginning of the log that
    is gone. Brokers go by leader epoch; without --epoch it is the one that the segments tell. With
    --bootstrap-server beside the source, retention and the ends of the log are known as well.
    Nothing is changed. Exit code 1 for more than notes; codes are in docs/findings.md. The rows of
    jsonl, csv and tsv are findings, so a readable offset has none: all of it is in json and yaml.

    \b
    Examples:
      rlmm explain orders-3@1500
      rlmm explain orders-3@1500 --epoch 4 --at 2026-01-31T14:05:00Z
      rlmm explain orders-3@1500 --bootstrap-server kafka:9092
      rlmm explain orders-3@1500 --check-objects --store s3://tiered/kafka/
      rlmm explain AAECAwQFBgcICQoLDA0ODw:orders-3@1500 --log-dirs copies/ --output json
    """
    if check_objects != bool(store):
        raise click.UsageError("--check-objects and --store belong together: where to look.")
    if not check_objects and (read_objects or any(bucket[name] for name in _OF_BUCKETS)):
        raise click.UsageError("Without --check-objects no store is looked into.")
    from rlmm.cli.queries.explain_answer import ExplainQuestion, explain_answer  # noqa: PLC0415  # not for help

    kept = None
    if check_objects:
        from rlmm.cli.tier_common.object_check import checked_store  # noqa: PLC0415  # needs its extras

        kept = checked_store(
            store, prefix, endpoint=bucket["endpoint"], region=bucket["region"],
            profile=bucket["profile"], is_path_style=bucket["path_style"],
            ca_file=bucket["store_ca_file"], is_requester_pays=bucket["requester_pays"],
        )  # fmt: skip
    label, offset = position
    asking = ExplainQuestion(label, offset, epoch, prefix, not no_history, kept, read_objects)
    answer(asked, explain_answer, asking=asking)
