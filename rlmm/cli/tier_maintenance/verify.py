"""`rlmm tier verify`: the objects of every finished segment are checked."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Any

import click

from rlmm.cli.common.option_kinds import CalledAsFlag, attach, rate_option, switch, text_option
from rlmm.cli.tier_common.examples import ending
from rlmm.cli.tier_common.job_context import (
    conclude,
    quiet_log,
    require_new,
    stopping_signals,
)
from rlmm.cli.tier_common.progress_line import progress_line
from rlmm.cli.tier_maintenance.options import care_options
from spark_tiering.executor.throttle import PaceLimits
from spark_tiering.maintenance.verify.values import SegmentSample, VerifyOptions
from spark_tiering.maintenance.verify.verification import verify_tier
from spark_tiering.maintenance.wiring import only_looking, open_tier, require_begun
from spark_tiering.segment_reading.key_files import KeyRingSettings, read_key_ring

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.maintenance.tier import CareRequest

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_SEED_MAX = 2**31 - 1


class _SampleType(click.ParamType):  # type: ignore[type-arg]  # it takes none when it runs
    name = "sample"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return (number, share), one of which is None."""
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
        help="Check a random sample of N segments, or of P per cent.",
    ),
    click.option(
        "--seed", type=click.IntRange(0, _SEED_MAX),
        help="Draw the sample of an earlier report again.",
    ),
    click.option(
        "--max-requests", type=click.IntRange(1),
        help="Begin no segment that could need more; the report names the place to go on.",
    ),
    text_option("--after", "PLACE", "Begin behind the place of an earlier report."),
    rate_option("--max-mb-per-s", "The throughput limit of the job."),
    rate_option("--max-requests-per-s", "The limit of requests to the store, of the job."),
    click.option(
        "--old-prefix", "old_prefixes", cls=CalledAsFlag, multiple=True, metavar="PREFIX",
        help="An older prefix of keys, where objects may still be. May be repeated.",
    ),
    click.option(
        "--key-ring", type=click.Path(dir_okay=False), default="", metavar="FILE",
        help="The key ring for encrypted segments; at the same path on every machine.",
    ),
    switch("--compacted", "Offsets without records are not damage: for compacted topics."),
)  # fmt: skip


@click.command("verify", epilog=ending("verify"))
@care_options()
@attach(_LOOKING)
def verify_command(
    request: CareRequest, *, output: str, report_file: Path | None, **flags: Any
) -> None:
    """
    Check that every finished segment has its objects, whole: three requests for each segment.

    --deep also reads the objects. Gaps, overlaps and leader epochs are checked by the metadata
    alone. Nothing is changed. A segment that is deleted meanwhile is not reported. SIGINT and
    SIGTERM stop the check; the report then covers the segments checked so far. Exit codes: 0 all
    segments are whole, 1 findings, or some segments were not checked, 2 invalid flags, 3 store,
    cluster or metadata cannot be used, 4 the metadata is not ready.
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
