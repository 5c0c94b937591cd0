"""Services that read a part of the metadata: jobs that judge objects refuse them, views do not."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import NotReady
from rlmm.metadata.assignment import Assignment
from tests.support.cli.tier_command import Command, said_on_stderr, trees
from tests.support.datasource.readable_tiers import rows_read, tier_in, usual_log
from tests.support.server.memory_service import PLACES, ServedMetadata
from tests.support.tier.job_folders import TierPlace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("bare_environment")
JOBS = {
    "audit": ("audit", "--no-spark"),
    "audit --delete-orphans": ("audit", "--no-spark", "--delete-orphans", "--min-age", "1s"),
    "expire --apply": ("expire", "--no-spark", "--retention-bytes", "1", "--offline", "--apply"),
    "rebuild": ("rebuild", "--no-spark"),
    "verify": ("verify", "--no-spark"),
    "export": ("export", "--no-spark", "--topic", "orders"),
}


@contextmanager
def partly_assigned() -> Iterator[str]:
    """Start a healthy service that reads all metadata partitions but one; return its address."""
    with ServedMetadata(Assignment.of_metadata(range(1, PLACES))) as served:
        yield served.address


@pytest.mark.parametrize("job", JOBS)
def test_job_when_the_service_reads_some_then_judges_nothing(job: str, tmp_path: Path) -> None:
    """A job judges nothing by a partial service: exit code 4, one line, no object changed."""
    place = TierPlace(tmp_path)
    assert place.run().is_fine
    before = trees(place)
    with partly_assigned() as address:
        command, *flags = JOBS[job]
        result = Command(place)(command, "--sidecar", address, *Command(place).store, *flags)
    assert (result.exit_code, result.stdout) == (4, ""), result.output
    (line,) = said_on_stderr(result)
    assert "metadata partition 0 is not-assigned" in line
    assert trees(place) == before


def test_data_source_when_the_service_reads_some_then_no_row_is_read(tmp_path: Path) -> None:
    """The data source returns no row by a partial service, because rows could be missing."""
    tier = tier_in(tmp_path, usual_log())
    with (
        partly_assigned() as address,
        pytest.raises(NotReady, match="metadata partition 0 is not-assigned"),
    ):
        rows_read({**tier, "sidecar": address})
