"""
`python -m bench.audit`: objects per second of an audit, from an inventory and by listing, beside
bare listings and bare reads of the inventory. One process on one processor; reading the metadata,
which an audit does twice, is measured by itself.
"""

from __future__ import annotations

import csv
import gzip
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from bench.figures import Figure, Run
from bench.recording import output_option, recording
from rlmm.state_sources.settings import SourceSettings
from spark_tiering.maintenance.audit.audit import Audit, AuditOptions
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import open_store
from tests.support.tier.audit_process import most_bytes
from tests.support.tier.large_tiers import NOW_MS, PLACES, PREFIX, LargeTier

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_SEGMENTS = 100_000
DEFAULT_LISTED = 16_667


class Audited(NamedTuple):
    objects: int
    seconds: float
    metadata_s: float
    peak_bytes: int


def audit(metadata: str, inventory: str, store: str) -> Audited:
    request = CareRequest(
        source=SourceSettings(log_dirs=(Path(metadata),), partition_count=PLACES),
        store=LocalSettings(Path(store), is_made=False) if store else None,
        prefix=PREFIX,
    )
    with open_tier(request, now_ms=lambda: NOW_MS) as tier:
        began_s = time.perf_counter()
        tier.moment().partitions()
        metadata_s = 2 * (time.perf_counter() - began_s)
        began_s = time.perf_counter()
        with Audit(tier, AuditOptions(inventory=inventory)) as audit:
            report = audit.run()
        seconds = time.perf_counter() - began_s
    return Audited(report.all.objects, seconds, metadata_s, most_bytes())


def list_barely(store: str) -> tuple[int, float]:
    with open_store(LocalSettings(Path(store))) as opened:
        began_s = time.perf_counter()
        count = sum(1 for _ in opened.list(PREFIX))
        return count, time.perf_counter() - began_s


def read_barely(inventory: str) -> tuple[int, float]:
    began_s = time.perf_counter()
    count = 0
    for path in sorted((Path(inventory) / "data").iterdir()):
        with gzip.open(path, "rt", newline="") as rows:
            count += sum(1 for _ in csv.reader(rows))
    return count, time.perf_counter() - began_s


def _write_objects(large: LargeTier, folder: Path) -> None:
    for row in large.rows():
        path = folder / row.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def measure(
    run: Run,
    name: str,
    bare: Callable[[str], tuple[int, float]],
    where: str,
    audited: Audited,
) -> None:
    count, seconds = run.apart(bare, where)
    assert count == audited.objects
    join_s = max(audited.seconds - audited.metadata_s, 1e-9)
    run.add(Figure(f"{name}: merely read", count / seconds, "objects/s"))
    run.add(Figure(f"{name}: audited", count / audited.seconds, "objects/s"))
    run.add(Figure(f"{name}: audited, without the metadata's reading", count / join_s, "objects/s"))
    run.add(Figure(f"{name}: an audit takes as long as so many bare readings",
                   audited.seconds / seconds, "times"))  # fmt: skip
    run.add(Figure(f"{name}: most memory of the process", audited.peak_bytes / 1e6, "MB"))


@click.command("audit")
@click.option("--segments", default=DEFAULT_SEGMENTS, show_default=True,
              help="Of the tier that is audited by its inventory; three objects each.")  # fmt: skip
@click.option("--listed", default=DEFAULT_LISTED, show_default=True,
              help="Of the tier that is listed.")  # fmt: skip
@output_option
@click.option("--in-this-process", is_flag=True, help="Start no process for each measurement.")
def main(segments: int, listed: int, output: Path | None, *, in_this_process: bool) -> None:
    """Measure audits beside bare listings, and inventories beside their bare reading."""
    run = Run(in_this_process)
    with (
        tempfile.TemporaryDirectory() as folder,
        recording(run, output, segments=segments, listed=listed),
    ):
        place = Path(folder)
        run.section(f"An inventory of {3 * segments:,} objects, CSV")
        large = LargeTier(segments)
        metadata = str(large.write_metadata(place / "metadata"))
        inventory = str(large.write_inventory(place / "inventory"))
        measure(run, "inventory", read_barely, inventory, run.apart(audit, metadata, inventory, ""))
        run.section(f"A folder of {3 * listed:,} objects, listed")
        small = LargeTier(listed)
        metadata = str(small.write_metadata(place / "less"))
        store = place / "store"
        store.mkdir()
        _write_objects(small, store)
        measure(run, "list", list_barely, str(store), run.apart(audit, metadata, "", str(store)))


if __name__ == "__main__":
    main()
