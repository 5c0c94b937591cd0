"""The demonstration without a broker, from its first screen to its end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.support.cli.demo_run import TITLES, ToldDemo, tell_demo

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(960)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> ToldDemo:
    folder = tmp_path_factory.mktemp("demo")
    return tell_demo(folder, "--without-broker", "--folder", str(folder / "data"))


def test_demo_without_a_broker_shows_all_nine_claims(demo: ToldDemo) -> None:
    """All nine screens run, and each has its tick."""
    assert demo.status == 0, demo.text
    assert tuple(demo.screens) == TITLES
    assert "✗" not in demo.text
    assert all("✓" in text for text in demo.screens.values())
    assert "9 of 9 claims shown" in demo.text


def test_demo_when_tiers_are_copied_and_local_data_is_gone_then_all_is_read(demo: ToldDemo) -> None:
    """The demo prints receipts, local bytes before and after, and one checksum for both sides."""
    assert re.search(r"clicks-0 0-\d+: finished, [\d,]+ bytes, crc64nvme [0-9a-f]{16}", demo.text)
    assert re.search(r"local: .* before, .* after", demo.screens["read cold"])
    read = re.search(r"([\d,]+) of ([\d,]+) records, checksum", demo.screens["read cold"])
    assert read is not None
    assert read[1] == read[2]
    assert int(read[1].replace(",", "")) > 100_000


def test_demo_when_its_service_is_behind_then_refuses_with_its_progress(demo: ToldDemo) -> None:
    """The refusal names position, target and the records that are left."""
    found = re.search(
        r"not-ready: replaying; at ([\d,]+) of ([\d,]+), ([\d,]+) records left, ask again in \d+",
        demo.screens["refuse"],
    )
    assert found is not None
    position, target, left = (int(one.replace(",", "")) for one in found.groups())
    assert 0 < left == target - position


def test_demo_when_metadata_is_lost_then_rebuilt_and_an_orphan_named(demo: ToldDemo) -> None:
    """After the rebuild all look-ups agree, and the audit names one orphan."""
    text = demo.screens["disaster"]
    same = re.search(r"(\d+) of (\d+) look-ups have the same answer", text)
    assert same is not None
    assert same[1] == same[2]
    assert text.count("TIER-ORPHAN") == 1


def test_demo_when_told_then_leaves_a_report_with_its_pictures(demo: ToldDemo) -> None:
    """The report shows maps of the tier, both starts, and the look-ups beside a replay."""
    assert len(demo.pictures()) == 3
    text = demo.report.read_text(encoding="utf-8")
    for label in ("before", "local data gone", "metadata rebuilt", "full replay", "from the snap"):
        assert label in text
    assert not re.search(r"https?:", text.partition("<body")[2])


def test_demo_when_given_a_folder_then_everything_stays_there(demo: ToldDemo) -> None:
    """The folder keeps the data after the demo."""
    folder: Path = demo.report.parent / "data"
    assert (folder / "service" / "log").is_dir()
    assert list((folder / "broker").glob("clicks-*"))
