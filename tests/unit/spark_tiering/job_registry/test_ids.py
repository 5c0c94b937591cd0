"""Ids of jobs."""

from __future__ import annotations

import pytest

from rlmm.metadata.ids import SegmentId, Uuid
from spark_tiering.job_registry.ids import began_ms, new_job_id
from spark_tiering.layout.digests import ContentDigest
from spark_tiering.layout.manifest import CopyNote
from tests.support.builders import tp

AT_MS = 1_795_052_712_345


def test_job_id_when_made_then_says_when_and_where_the_job_began() -> None:
    """A job id sorts by time and gives back the second in which the job began."""
    job_id = new_job_id(AT_MS, "Driver-7.example.org", "0a1b2c")
    assert job_id == "20261119T014512Z-driver-7.example.org-0a1b2c"
    assert began_ms(job_id) == AT_MS // 1_000 * 1_000
    assert new_job_id(AT_MS + 1_000, "a", "000000") > job_id


def test_job_ids_when_made_at_one_moment_then_differ() -> None:
    """Job ids made at one moment differ in their random digits."""
    assert len({new_job_id(AT_MS, "host") for _ in range(50)}) == 50


@pytest.mark.parametrize("host", ["", "ein haus/mit namen", "ä", "h" * 300, "..", "-"])
def test_job_id_when_the_host_has_any_name_then_is_fit_for_keys_and_notes(host: str) -> None:
    """A job id is valid in keys and manifests for any host name."""
    job_id = new_job_id(AT_MS, host)
    assert began_ms(job_id) is not None
    segment = SegmentId(tp(), Uuid.of(0, 1))
    digest = ContentDigest(1, b"\0" * 32, 0)
    assert CopyNote("rlmm", job_id, digest, digest, digest).job_id == job_id, segment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "orders",
        "20261119T014512Z",
        "20261119T014512Z-host",
        "20261319T014512Z-host-0a1b2c",
        "20261119T014512Z-host-0A1B2C",
        "20261119T014512Z-ho/st-0a1b2c",
        "20261119T014512Z-host-0a1b2c\n",
        "٢0261119T014512Z-host-0a1b2c",
    ],
)
def test_text_when_it_is_no_id_then_began_at_no_time(text: str) -> None:
    """Names that are no job id are passed over when the folder of jobs is listed."""
    assert began_ms(text) is None
