"""`rlmm tier audit`: compares store, metadata and cluster, and deletes orphans on request."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlmm.cli.common.exit_codes import EXIT_FOUND
from rlmm.cli.common.option_kinds import CalledAsFlag, ExplicitFlag
from rlmm.cli.common.parameter_types import POSITIVE_TIME
from rlmm.cli.tier_common.examples import ending
from rlmm.cli.tier_common.job_context import (
    print_and_keep,
    quiet_log,
    require_new,
    stopping_signals,
)
from rlmm.cli.tier_common.progress_line import progress_line
from rlmm.cli.tier_maintenance.options import care_options
from rlmm.errors import ConfigError
from spark_tiering.maintenance.audit.audit import Audit, AuditOptions, store_name
from spark_tiering.maintenance.audit.object_set_verdict import USUAL_PROOFS, AuditRules, OrphanProof
from spark_tiering.maintenance.audit.orphan_deletion import MOST, OrphanDeletion, require_deletable
from spark_tiering.maintenance.audit.unknown_sets import read_list
from spark_tiering.maintenance.wiring import only_looking, open_tier, require_begun
from spark_tiering.reporting.progress import Meter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from spark_tiering.maintenance.audit.orphan_deletion import OrphanDeletionResult
    from spark_tiering.maintenance.audit.unknown_sets import UnknownObjectSet
    from spark_tiering.maintenance.tier import CareRequest, Tier

_NEW_FILE = click.Path(dir_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("audit", epilog=ending("audit"))
@care_options(store="optional")
@click.option(
    "--inventory", default="", metavar="s3://BUCKET/.../manifest.json|FOLDER",
    help="Use an S3 Inventory instead of a listing. Without --store no object is checked again.",
)  # fmt: skip
@click.option(
    "--old-prefix", "old_prefixes", cls=CalledAsFlag, multiple=True, metavar="PREFIX",
    help="An older prefix of keys; objects under it are expected, too. May be repeated.",
)  # fmt: skip
@click.option(
    "--min-age", type=POSITIVE_TIME, default="1d", show_default=True, metavar="TIME",
    help="Younger objects may belong to a running copy: they are neither leftovers nor orphans.",
)  # fmt: skip
@click.option(
    "--price-gib-month", "price", type=click.FloatRange(min=0), metavar="PRICE",
    help="The price of a GiB for a month.",
)  # fmt: skip
@click.option(
    "--save-orphans", "save_file", cls=CalledAsFlag, type=_NEW_FILE, metavar="FILE",
    help="Write the orphans, with their proofs, to a list for review.",
)  # fmt: skip
@click.option(
    "--orphans", "list_file", cls=CalledAsFlag, type=_FILE, metavar="FILE",
    help="Use such a list and check nothing else; each proof is checked again.",
)  # fmt: skip
@click.option(
    "--delete-orphans", "is_deleting", cls=ExplicitFlag, is_flag=True,
    help="Delete the orphans. The metadata is read anew before each batch.",
)  # fmt: skip
@click.option(
    "--proof", "proofs", cls=CalledAsFlag, multiple=True,
    type=click.Choice([one.value for one in OrphanProof]),
    help="Delete by this proof alone; may be repeated. By default any but topic-unknown, which also"
    " fits the objects of another cluster that shares the bucket.",
)  # fmt: skip
@click.option(
    "--max-delete", type=click.IntRange(1), default=MOST, show_default=True, metavar="N",
    help="Delete the objects of at most N segments.",
)  # fmt: skip
def audit_command(  # noqa: PLR0913 - one for each flag
    request: CareRequest,
    *,
    output: str,
    report_file: Path | None,
    inventory: str,
    old_prefixes: tuple[str, ...],
    min_age: int,
    price: float | None,
    save_file: Path | None,
    list_file: Path | None,
    is_deleting: bool,
    proofs: tuple[str, ...],
    max_delete: int,
) -> None:
    """
    Compare the store with the metadata, and both with the cluster. Without --delete-orphans
    nothing is changed.

    The verdict is Clean, Dirty (leftovers) or Corrupt (data is missing, or contradicts the
    metadata). Exit codes: 0 the tier is clean, and all orphans to delete are deleted; 1 findings; 2
    invalid flags, or an inventory that cannot be used; 3 store, cluster or metadata cannot be
    reached, 4 the metadata is not ready.
    """
    require_new(report_file)
    require_new(save_file)
    _check(request, list_file, save_file, inventory, is_deleting=is_deleting)
    allowed = tuple(OrphanProof(one) for one in proofs) or USUAL_PROOFS
    options = AuditOptions(old_prefixes, inventory, min_age, price)
    with ExitStack() as opened:
        opened.enter_context(quiet_log())
        tier = opened.enter_context(open_tier(only_looking(require_begun(request))))
        if is_deleting:
            require_deletable(tier)
        why_stop = opened.enter_context(stopping_signals())

        def deletions(
            rules: AuditRules, orphans: Callable[[], Iterator[UnknownObjectSet]]
        ) -> OrphanDeletionResult:
            with progress_line() as line:
                return OrphanDeletion(
                    tier, rules, proofs=allowed, is_dry=not is_deleting, most=max_delete,
                    why_stop=why_stop, meter=Meter(line.show),
                ).run(orphans)  # fmt: skip

        if list_file is not None:
            is_fine = _by_list(tier, options, list_file, deletions, output, report_file)
        else:
            with progress_line() as line:
                meter = Meter(line.show)
                audit = opened.enter_context(Audit(tier, options, why_stop, meter))
                report = audit.run()
            if save_file is not None and not report.stopped:
                _keep(audit.orphans_file, save_file)
                report.orphans_file = str(save_file)
            if is_deleting and not report.stopped:
                report.deletions = deletions(audit.rules, audit.orphans)
            print_and_keep(report.lines(), report.document(), output, report_file)
            is_fine = report.is_fine
    if not is_fine:
        click.get_current_context().exit(EXIT_FOUND)


def _by_list(
    tier: Tier,
    options: AuditOptions,
    file: Path,
    deletions: Callable[
        [AuditRules, Callable[[], Iterator[UnknownObjectSet]]], OrphanDeletionResult
    ],
    output: str,
    report_file: Path | None,
) -> bool:
    """Use a list of orphans; return whether all of them are deleted."""
    request = tier.request
    now_ms = tier.now_ms()
    prefixes = (request.prefix, *options.old_prefixes)

    def orphans() -> Iterator[UnknownObjectSet]:
        with file.open(encoding="utf-8", errors="replace") as lines:
            yield from read_list(lines, str(file), store_name(request.store), prefixes)

    for _ in orphans():
        pass  # all of it is read before anything is done by it
    done = deletions(AuditRules(now_ms, now_ms, options.min_age_ms), orphans)
    document: dict[str, Any] = {
        "format": "rlmm-tier-orphans-report", "version": 1, **done.document()
    }  # fmt: skip
    print_and_keep(done.lines(), document, output, report_file)
    return done.is_fine


def _check(
    request: CareRequest,
    list_file: Path | None,
    save_file: Path | None,
    inventory: str,
    *,
    is_deleting: bool,
) -> None:
    if request.store is None and (is_deleting or list_file is not None):
        msg = "orphans are deleted from a store: name it with --store"
        raise ConfigError(msg)
    if list_file is not None and (save_file is not None or inventory):
        msg = "--orphans goes by a list: --save-orphans and --inventory are for making one"
        raise ConfigError(msg)


def _keep(orphans: Path, file: Path) -> None:
    try:
        with orphans.open("rb") as made, file.open("xb") as kept:
            shutil.copyfileobj(made, kept)
    except OSError as error:
        msg = f"{file}: {error.strerror or error}"
        raise ConfigError(msg) from error
