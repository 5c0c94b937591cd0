"""`rlmm tier verify`: every finished segment has its objects, and they are what they should be."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Any

import click

from rlmm.cli.common.environment_variables import CalledAsFlag
from rlmm.cli.tier_common.examples import ending
from rlmm.cli.tier_common.job_context import (
    conclude,
    quiet_log,
    require_new,
    stopping_signals,
)
from rlmm.cli.tier_common.progress_line import progress_line
from rlmm.cli.tier_maintenance.options import attach, care_options
from spark_tiering.executor.throttle import PaceLimits
from spark_tiering.maintenance.verify.settings import SegmentSample, VerifyOptions
from spark_tiering.maintenance.verify.verification import verify_tier
from spark_tiering.maintenance.wiring import only_looking, open_tier, require_begun
from spark_tiering.segment_reading.key_files import KeyRingSettings, read_key_ring

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.maintenance.request import CareRequest

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_SEED_MAX = 2**31 - 1


class _SampleType(click.ParamType):  # type: ignore[type-arg]  # it takes none when it runs
    """A number of segments, or a share of them."""

    name = "sample"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """(number, share), one of which is None."""
        if isinstance(value, tuple):
            return value
        share = _SHARE.fullmatch(str(value).strip())
        if share is not None:
            return None, float(share[1]) / 100
        if not str(value).strip().isdecimal():
            self.fail(f"{value!r} is no sample: 500 segments or 2% of them are.", param, ctx)
        return int(value), None


_LOOKING = (
    click.option(
        "--deep", is_flag=True,
        help="Read every log and index: CRCs of batches, offsets against the metadata, indexes "
        "against the log.",
    ),
    click.option(
        "--sample", type=_SampleType(), metavar="N|P%",
        help="Look at N segments, or at P per cent of them, drawn at random.",
    ),
    click.option(
        "--seed", type=click.IntRange(0, _SEED_MAX),
        help="Draw the sample of an earlier report again.",
    ),
    click.option(
        "--max-requests", type=click.IntRange(1),
        help="Begin no segment that could need more; the report says where to go on.",
    ),
    click.option("--after", default="", metavar="PLACE", help="Go on where a report has stopped."),
    click.option("--max-mb-per-s", type=click.FloatRange(0, min_open=True), help="Of the whole."),
    click.option(
        "--max-requests-per-s", type=click.FloatRange(0, min_open=True),
        help="To the store, of the whole.",
    ),
    click.option(
        "--old-prefix", "old_prefixes", cls=CalledAsFlag, multiple=True, metavar="PREFIX",
        help="Where objects are that were written under another prefix. May be repeated.",
    ),
    click.option(
        "--key-ring", type=click.Path(dir_okay=False), default="", metavar="FILE",
        help="Opens segments that are encrypted; the same file on every machine that reads.",
    ),
    click.option(
        "--compacted", is_flag=True,
        help="Offsets without records are no damage: what a cleaner leaves.",
    ),
)  # fmt: skip


@click.command("verify", epilog=ending("verify"))
@care_options()
@attach(_LOOKING)
def verify_command(
    request: CareRequest, *, output: str, report_file: Path | None, **flags: Any
) -> None:
    """
    Look whether every finished segment has its objects, whole: three requests for each.

    --deep also reads them. Segments side by side, with gaps, overlaps and leader epochs, are judged
    by the metadata alone. Nothing is changed, and a segment that is deleted meanwhile is no
    finding. SIGINT and SIGTERM stop it; what was looked at is told. Exit codes: 0 all is whole, 1
    something was found, or not everything was looked at, 2 flags, 3 where store, cluster or
    metadata cannot be used, 4 where the metadata is not ready.
    """
    options = _options_of(flags)
    require_new(report_file)
    if options.key_ring is not None:
        read_key_ring(options.key_ring)
    with (
        quiet_log(),
        open_tier(only_looking(require_begun(request))) as tier,
        progress_line() as line,
        stopping_signals() as why_stop,
    ):
        report = verify_tier(
            tier,
            options,
            why_stop=why_stop,
            on_progress=line.show,
        )
    conclude(report, output, report_file)


def _options_of(flags: dict[str, Any]) -> VerifyOptions:
    mb_per_s, sample = flags["max_mb_per_s"], None
    if flags["sample"] is not None:
        (count, share), seed = flags["sample"], flags["seed"]
        sample = SegmentSample(count, share, secrets.randbelow(_SEED_MAX) if seed is None else seed)
    elif flags["seed"] is not None:
        msg = "--seed draws a sample again, and there is no --sample"
        raise click.UsageError(msg)
    return VerifyOptions(
        is_deep=flags["deep"],
        sample=sample,
        max_requests=flags["max_requests"],
        pace=PaceLimits(None if mb_per_s is None else mb_per_s * 1e6, flags["max_requests_per_s"]),
        old_prefixes=tuple(flags["old_prefixes"]),
        key_ring=KeyRingSettings(flags["key_ring"]) if flags["key_ring"] else None,
        allows_holes=flags["compacted"],
        after=flags["after"],
    )
