"""Log folders as a source: their partitions, and entries that only look like one."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import ConfigError, LogNotPermitted, LogUnavailable
from rlmm.metadata.ids import TopicIdPartition
from rlmm.partition_log.names import PARTITION_METADATA, TopicPartition
from spark_tiering.segment_sources.opening import open_source
from spark_tiering.segment_sources.protocol import OWN_TOPICS, UNKNOWN_TOPIC_ID
from spark_tiering.segment_sources.settings import LogDirSettings
from tests.support.partitions.log_dirs import CLUSTER_ID, TOPIC_ID, add_partition, make_log_dir

if TYPE_CHECKING:
    from spark_tiering.segment_sources.protocol import FoundPartition, UnusablePlace


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return make_log_dir(tmp_path / "logs", high_watermarks={TopicPartition("orders", 3): 200})


def look(*folders: Path) -> tuple[list[FoundPartition], list[UnusablePlace]]:
    return open_source(LogDirSettings(tuple(str(folder) for folder in folders))).partitions()


def test_log_dir_when_it_is_looked_at_then_gives_partitions_by_identity(log_dir: Path) -> None:
    """A log folder gives partitions with topic id, node, cluster and high watermark."""
    folder = add_partition(log_dir)
    (one,), unusable = look(log_dir)
    assert unusable == []
    assert one.partition == TopicIdPartition(TOPIC_ID, "orders", 3)
    assert one.origin == (str(folder), 1, CLUSTER_ID)
    assert one.high_watermark == 200
    sent = pickle.loads(pickle.dumps(one.files))
    assert sent.facts().keys() == {path.name for path in folder.iterdir()}


NO_PARTITIONS = [
    *(f"{topic}-0" for topic in sorted(OWN_TOPICS)),
    "orders-3.0123456789abcdef0123456789abcdef-delete",
    "orders-3.0123456789abcdef0123456789abcdef-future",
    "orders-03",
    "orders",
    "lost+found",
]


@pytest.mark.parametrize("name", NO_PARTITIONS)
def test_folder_when_it_is_no_user_partition_then_is_passed_over(log_dir: Path, name: str) -> None:
    """Folders of internal topics, and those being deleted or moved, are not surveyed."""
    add_partition(log_dir, name)
    add_partition(log_dir)
    found, unusable = look(log_dir)
    assert [one.partition.topic for one in found] == ["orders"]
    assert unusable == []


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["meta.properties", "replication-offset-checkpoint"])
def test_file_of_a_log_dir_when_it_is_a_pipe_then_refused_at_once(log_dir: Path, name: str) -> None:
    """A job opens only regular files of a log folder, and names the file that is none."""
    add_partition(log_dir)
    (log_dir / name).unlink()
    os.mkfifo(log_dir / name)
    with pytest.raises(LogUnavailable, match=f"{name} could not be read: no regular file"):
        look(log_dir)


@pytest.mark.timeout(60)
def test_partition_when_its_topic_id_is_in_a_pipe_then_unusable(log_dir: Path) -> None:
    """A pipe in place of partition.metadata makes one partition unusable, and no command hangs."""
    path = add_partition(log_dir) / "partition.metadata"
    path.unlink()
    os.mkfifo(path)
    found, (unusable,) = look(log_dir)
    assert found == []
    assert "partition.metadata could not be read: no regular file" in unusable.why


def test_folder_when_it_is_stray_then_is_told(log_dir: Path) -> None:
    """A stray folder is reported, because it may be the last replica."""
    folder = add_partition(log_dir, "orders-3.0123456789abcdef0123456789abcdef-stray")
    found, (stray,) = look(log_dir)
    assert found == []
    assert stray.place == str(folder)
    assert "set aside by its broker" in stray.why


TORN = {
    "empty": b"",
    "cut off": b"version: 0\ntopic_id: AAECAw",
    "no id": b"version: 0\n",
    "zeros": b"\0" * 43,
    "the id of no topic": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
}


@pytest.mark.parametrize("content", TORN.values(), ids=TORN)
def test_folder_when_its_identity_is_torn_then_is_of_no_use(log_dir: Path, content: bytes) -> None:
    """A folder with an unreadable topic id is reported as unusable, and the others are found."""
    folder = add_partition(log_dir, "torn-0")
    (folder / PARTITION_METADATA).write_bytes(content)
    add_partition(log_dir)
    found, (torn,) = look(log_dir)
    assert [one.partition.topic for one in found] == ["orders"]
    assert torn.place == str(folder)
    assert PARTITION_METADATA in torn.why


def test_folder_when_it_does_not_say_its_topic_id_then_the_cluster_has_to(log_dir: Path) -> None:
    """A folder without a topic id is usable where the cluster gives the id."""
    add_partition(log_dir, topic_id=None)
    (one,), unusable = look(log_dir)
    assert (one.partition.topic_id, unusable) == (UNKNOWN_TOPIC_ID, [])


def test_folder_when_it_is_a_file_then_is_of_no_use(log_dir: Path) -> None:
    """A file with the name of a partition is unusable."""
    (log_dir / "orders-3").write_bytes(b"")
    found, (one,) = look(log_dir)
    assert found == []
    assert "no folder" in one.why


def refuse_to_open(monkeypatch: pytest.MonkeyPatch, path: Path, error: OSError) -> None:
    opened = os.open

    def refuse(asked: Any, *arguments: Any, **named: Any) -> int:
        if not isinstance(asked, int) and Path(asked) == path:
            raise error
        return opened(asked, *arguments, **named)

    monkeypatch.setattr(os, "open", refuse)


REFUSALS = {
    "rights": (PermissionError(13, "Permission denied"), "not permitted to read"),
    "disk": (OSError(5, "Input/output error"), "could not be read: Input/output error"),
}


@pytest.mark.parametrize(("error", "why"), REFUSALS.values(), ids=REFUSALS)
def test_folder_when_it_cannot_be_read_then_is_of_no_use(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, why: str
) -> None:
    """An unreadable folder is reported as unusable, and the others are found."""
    folder = add_partition(log_dir, "closed-0")
    add_partition(log_dir)
    refuse_to_open(monkeypatch, folder / PARTITION_METADATA, error)
    found, (closed,) = look(log_dir)
    assert [one.partition.topic for one in found] == ["orders"]
    assert (closed.place, why in closed.why) == (str(folder), True)


def test_log_dirs_when_there_are_several_then_each_replica_has_its_node(tmp_path: Path) -> None:
    """Several log folders give each replica with its node, and a folder named twice counts once."""
    first, second = (make_log_dir(tmp_path / f"logs-{node}", node_id=node) for node in (1, 2))
    add_partition(first)
    add_partition(second)
    found, _ = look(first, second, first)
    assert [one.origin.node_id for one in found] == [1, 2]
    assert len({one.partition for one in found}) == 1
    assert {one.high_watermark for one in found} == {None}


PROPERTIES = {
    "of a broker that knew ZooKeeper": ("broker.id=7\nversion=0\n", 7),
    "without a node": ("version=1\n", None),
    "of no number": ("node.id=seven\n", None),
    "damaged": ("node.id=\\u00\n", None),
}


@pytest.mark.parametrize(("text", "expected"), PROPERTIES.values(), ids=PROPERTIES)
def test_odd_properties_hide_the_node(log_dir: Path, text: str, expected: int | None) -> None:
    """Odd properties cost the node id and high watermark alone."""
    (log_dir / "meta.properties").write_text(text)
    (log_dir / "replication-offset-checkpoint").write_bytes(b"torn")
    add_partition(log_dir)
    (one,), _ = look(log_dir)
    assert (one.origin.node_id, one.high_watermark) == (expected, None)


def test_log_dir_when_it_has_only_partitions_then_is_one(tmp_path: Path) -> None:
    """A folder that holds only partition folders counts as a log folder."""
    (tmp_path / "copied").mkdir()
    add_partition(tmp_path / "copied")
    (one,), _ = look(tmp_path / "copied")
    assert one.origin[1:] == (None, "")


def test_log_dir_when_it_is_none_then_one_line_says_so(tmp_path: Path, log_dir: Path) -> None:
    """A missing folder, a file or an unrelated folder is refused in one line."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letters").mkdir()
    for name in ("missing", "file", "other"):
        with pytest.raises(ConfigError, match=f"{name} is no log folder of a broker: ") as caught:
            look(log_dir, tmp_path / name)
        assert "\n" not in str(caught.value)


def test_log_dir_when_it_is_a_partitions_folder_then_names_its_parent(log_dir: Path) -> None:
    """A partition's folder given as log folder is refused with advice to name its parent."""
    folder = add_partition(log_dir)
    with pytest.raises(ConfigError, match="the folder of one partition: name the folder above it"):
        look(folder)


def test_log_dir_when_it_holds_nothing_then_is_empty(log_dir: Path) -> None:
    """A log folder without partitions is valid and empty."""
    assert look(log_dir) == ([], [])


@pytest.mark.parametrize("error", [case[0] for case in REFUSALS.values()], ids=REFUSALS)
def test_log_dir_when_it_cannot_be_read_then_says_so(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    """The error says whether a retry or the operator helps, and names the path."""
    expected = LogNotPermitted if isinstance(error, PermissionError) else LogUnavailable

    def refuse(_: Path) -> object:
        raise error

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(expected, match=str(log_dir)):
        look(log_dir)


@pytest.mark.parametrize("folders", [(), ("",)], ids=["none", "empty"])
def test_settings_when_they_name_no_folder_then_are_refused(folders: tuple[str, ...]) -> None:
    """Settings without a folder are refused, and do not mean the current folder."""
    with pytest.raises(ConfigError, match="at least one"):
        LogDirSettings(folders)
