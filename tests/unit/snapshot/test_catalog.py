"""Which snapshots exist, where they are, and which go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.log.protocol import LogIdentity
from rlmm.metadata.ids import Uuid
from rlmm.snapshot.atomic import SnapshotDisk
from rlmm.snapshot.catalog import (
    Catalog,
    CatalogEntry,
    cluster_folder,
    identity_folder,
    position_of,
    topics_remembered,
)
from tests.support.engine.snapshots import IDENTITY, files_below

if TYPE_CHECKING:
    from pathlib import Path


def catalog_with(root: Path, *positions: int, others: tuple[str, ...] = ()) -> Catalog:
    catalog = Catalog(identity_folder(root, IDENTITY), SnapshotDisk())
    catalog.folder_of(3).mkdir(parents=True)
    for position in positions:
        catalog.path_of(3, position).touch()
    for name in others:
        (catalog.folder_of(3) / name).touch()
    return catalog


def newest(catalog: Catalog, position: int) -> CatalogEntry:
    return CatalogEntry(catalog.path_of(3, position), 3, position, 0)


def left(catalog: Catalog) -> list[int]:
    return [stored.position for stored in catalog.newest_first(3)]


def test_snapshots_when_listed_then_the_largest_position_comes_first(tmp_path: Path) -> None:
    """Snapshots are listed by position, whatever its digits; other files are ignored."""
    others = ("5.snapshot", "00000000000000000011.snapshot.tmp", "x", "0" * 20)
    catalog = catalog_with(tmp_path, 9, 10, 0, 2**63 - 2, others=others)
    assert left(catalog) == [2**63 - 2, 10, 9, 0]
    assert catalog.newest_first(4) == []


@pytest.mark.parametrize(
    ("cluster_id", "name"),
    [
        ("MkU3OEVBNTcwNTJENDM2Qg", "MkU3OEVBNTcwNTJENDM2Qg"),
        ("a/../b", "a%2F..%2Fb"),
        ("..", "%2E."),
        (".", "%2E"),
        ("Z\u00fcrich 1", "Z%C3%BCrich%201"),
        ("%41", "%2541"),
    ],
    ids=ascii,
)
def test_folder_of_a_cluster_is_a_plain_name(cluster_id: str, name: str) -> None:
    """The folder of a cluster is one plain name that no other cluster has."""
    assert cluster_folder(cluster_id) == name


def test_folder_of_a_cluster_with_a_long_id_is_short_and_its_own() -> None:
    """A long id cannot be turned down by the file system, and two of them differ."""
    first, second = cluster_folder("x" * 30_000), cluster_folder("x" * 30_001)
    assert len(first) < 120
    assert first != second
    assert first != cluster_folder(first)


def test_folders_of_two_logs_are_apart(tmp_path: Path) -> None:
    """Another topic of the same cluster, and another cluster, have folders of their own."""
    other = LogIdentity("other", IDENTITY.topic_id, 50)
    assert identity_folder(tmp_path, other) != identity_folder(tmp_path, IDENTITY)


def test_name_that_is_not_a_snapshots_has_no_position() -> None:
    """Unfinished files and those set aside are no snapshots."""
    assert position_of(f"{7:020d}.snapshot") == 7
    for name in ("7.snapshot", f"{7:020d}.snapshot.tmp", f"{7:020d}.snapshot.void", f"{7:020d}"):
        assert position_of(name) is None


def test_f16_unfinished_files_when_swept_then_are_gone_and_nothing_else(tmp_path: Path) -> None:
    """The sweep removes unfinished snapshots and leaves all other files."""
    others = (f"{7:020d}.snapshot.tmp", f"{8:020d}.snapshot.void", "notes.tmp")
    catalog = catalog_with(tmp_path, 5, others=others)
    swept = catalog.sweep(3)
    assert [path.name for path in swept] == [f"{7:020d}.snapshot.tmp"]
    assert files_below(tmp_path) == [
        f"3/{5:020d}.snapshot",
        f"3/{8:020d}.snapshot.void",
        "3/notes.tmp",
    ]


@pytest.mark.parametrize(
    ("positions", "newest_at", "keep", "damaged", "foreign", "kept"),
    [
        pytest.param((1, 2, 3, 4, 5), 5, 2, (), (), [5, 4], id="2 generations"),
        pytest.param((1, 2, 3, 4, 5), 5, 3, (), (), [5, 4, 3], id="3 generations"),
        pytest.param((1, 2, 3, 4), 4, 2, (3,), (), [4, 2], id="a damaged one does not count"),
        pytest.param((1, 2, 3, 9), 3, 2, (), (2, 9), [9, 3, 2, 1], id="foreign ones stay"),
    ],
)
def test_prune_then_keeps_the_newest_sound_generations(
    tmp_path: Path,
    positions: tuple[int, ...],
    newest_at: int,
    keep: int,
    damaged: tuple[int, ...],
    foreign: tuple[int, ...],
    kept: list[int],
) -> None:
    """Pruning keeps the configured number of sound snapshots, and those of other logs."""
    catalog = catalog_with(tmp_path, *positions)
    paths = [{catalog.path_of(3, position) for position in some} for some in (damaged, foreign)]
    catalog.prune(newest(catalog, newest_at), keep, *paths)
    assert left(catalog) == kept


def test_f6_prune_when_one_lies_beyond_the_newest_then_it_is_set_aside(tmp_path: Path) -> None:
    """A snapshot beyond the state's position is set aside, because the log was truncated."""
    catalog = catalog_with(tmp_path, 1, 2, 900)
    catalog.prune(newest(catalog, 2), 2, set(), set())
    assert left(catalog) == [2, 1]
    assert f"3/{900:020d}.snapshot.void" in files_below(tmp_path)
    catalog.prune(newest(catalog, 2), 2, set(), set())
    assert len(files_below(tmp_path)) == 2


def test_topics_when_there_are_snapshots_of_theirs_then_they_are_remembered(tmp_path: Path) -> None:
    """The store knows the cluster's former topics from snapshots that hold a record."""
    assert topics_remembered(tmp_path / "absent", "a") == frozenset()
    for cluster_id in ("a/../b", "other"):
        for number, positions in enumerate(((7,), (0, 9), (0,), ())):
            identity = LogIdentity(cluster_id, Uuid.of(1, number), 5)
            catalog = Catalog(identity_folder(tmp_path, identity), SnapshotDisk())
            catalog.folder_of(3).mkdir(parents=True)
            for position in positions:
                catalog.path_of(3, position).touch()
    expected = {str(Uuid.of(1, 0)), str(Uuid.of(1, 1))}
    assert topics_remembered(tmp_path, "a/../b") == expected
