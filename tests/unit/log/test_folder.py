"""The owner of a folder by its names and small files; looking writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError
from rlmm.log.files.log_folder import (
    PARTITION_COUNT,
    TOPIC,
    UNKNOWN_CLUSTER_ID,
    UNKNOWN_TOPIC_ID,
    copied_identity,
    keep_identity,
    kept_identity,
    look_at,
    new_identity,
)
from rlmm.log.new_ids import random_uuid
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.ids import Uuid

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TOPIC_ID = Uuid(bytes(range(16)))
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
BROKER_PROPERTIES = f"""#
#Wed Nov 18 10:00:00 UTC 2026
cluster.id={CLUSTER_ID}
directory.id=AAECAwQFBgcICQoLDA0ODw
node.id=3
version=1
"""


def make_partitions(
    folder: Path, *numbers: int, topic_id: Uuid = TOPIC_ID, record_bytes: int = 0
) -> None:
    for number in numbers:
        path = folder / f"{TOPIC}-{number}"
        path.mkdir(parents=True)
        (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
        (path / "00000000000000000000.log").write_bytes(bytes(record_bytes))


def make_ours(folder: Path, count: int) -> LogIdentity:
    make_partitions(folder, *range(count), record_bytes=70)
    identity = LogIdentity(CLUSTER_ID, TOPIC_ID, count)
    keep_identity(folder, identity)
    return identity


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_random_uuid_when_made_then_never_looks_like_an_option() -> None:
    """Ids are made as Kafka makes them: different, and none begins with a dash."""
    made = {random_uuid() for _ in range(500)}
    assert len(made) == 500
    assert not [uuid for uuid in made if str(uuid).startswith("-")]


@pytest.mark.parametrize(("asked", "count"), [(None, 50), (7, 7)], ids=["default", "configured"])
def test_new_identity_when_the_folder_is_not_there_then_ids_are_made(
    tmp_path: Path, asked: int | None, count: int
) -> None:
    """A log begins in a folder that does not exist, with as many partitions as are asked for."""
    found = look_at(tmp_path / "new")
    assert not found.exists
    one, other = new_identity(found, asked), new_identity(found, asked)
    assert one is not None
    assert other is not None
    assert one.partition_count == count
    assert one.cluster_id != other.cluster_id
    assert one.topic_id != other.topic_id
    assert not (tmp_path / "new").exists()


def test_new_identity_when_a_beginning_was_broken_off_then_it_goes_on(tmp_path: Path) -> None:
    """Folders without a record and without `meta.properties` keep the topic id they have."""
    make_partitions(tmp_path, 0, 1, 2)
    (tmp_path / ".lock").touch()
    (tmp_path / "meta.properties.tmp").touch()
    (tmp_path / "lost+found").mkdir()
    identity = new_identity(look_at(tmp_path), 7)
    assert identity is not None
    assert (identity.topic_id, identity.partition_count) == (TOPIC_ID, 7)


@pytest.mark.parametrize(
    ("names", "below", "complaint"),
    [
        (["notes.txt"], "", "holds 'notes.txt', which"),
        (["b", "a", "c"], "", "holds 'a' and 2 more, which"),
        (["orders-0"], "", "holds 'orders-0', which"),
        ([f"{TOPIC}-3.abc-delete"], "", f"holds '{TOPIC}-3.abc-delete', which"),
        (["meta.properties", "__cluster_metadata-0"], "", "holds '__cluster_metadata-0', which"),
        (["meta.properties"], "rlmm", "lies inside .* name a folder elsewhere"),
        (["meta.properties"], "rlmm-0", "lies inside .* name a folder elsewhere"),
        (["meta.properties"], "a/b/c", "lies inside .* name a folder elsewhere"),
    ],
    ids=["file", "files", "topic", "deleted", "broker", "inside", "inside-0", "inside-deep"],
)
def test_new_identity_when_the_folder_is_something_else_then_is_refused_in_one_line(
    tmp_path: Path, names: list[str], below: str, complaint: str
) -> None:
    """One line has folder, contents and remedy; in a broker's folder a log would stop its start."""
    for name in names:
        (tmp_path / name).write_text(BROKER_PROPERTIES)
    with pytest.raises(ConfigError, match=complaint) as caught:
        new_identity(look_at(tmp_path / below), None)
    line = str(caught.value)
    assert str(tmp_path / below) in line
    assert below or ": name a folder of its own" in line
    assert "\n" not in line


def make_short(folder: Path) -> None:
    make_partitions(folder, 0, 1, 3)
    keep_identity(folder, LogIdentity(CLUSTER_ID, TOPIC_ID, 4))


REFUSALS: dict[str, tuple[Callable[[Path], object], Callable[..., object], int | None, str]] = {
    "more were begun": (
        lambda it: make_partitions(it, 0, 16),
        new_identity,
        7,
        "a partition 16, the configuration says that there are 7",
    ),
    "records without identity": (
        lambda it: make_partitions(it, 0, record_bytes=70),
        new_identity,
        None,
        r"but no meta\.properties.*observer",
    ),
    "another count": (
        lambda it: make_ours(it, 3),
        kept_identity,
        50,
        "made with 3 partitions, the configuration says 50: .* configure 3, or",
    ),
    "a partition is missing": (
        make_short,
        kept_identity,
        None,
        "holds 3 .* expected are 4, .* missing is 2: restore the folders",
    ),
    "a copy beyond the count": (
        lambda it: make_partitions(it, 4, 17),
        copied_identity,
        16,
        "a partition 17, the configuration says that there are 16: configure",
    ),
    "an empty copy": (
        lambda _: None,
        copied_identity,
        50,
        f"holds no folder {TOPIC}-N: .* name the folder above",
    ),
    "an absent copy": (
        lambda it: it.rmdir(),
        copied_identity,
        50,
        f"holds no folder {TOPIC}-N: .* name the folder above",
    ),
}


@pytest.mark.parametrize(("make", "judge", "count", "says"), REFUSALS.values(), ids=REFUSALS)
def test_f7_f44_identity_when_the_folder_contradicts_it_then_is_refused(
    tmp_path: Path,
    make: Callable[[Path], object],
    judge: Callable[..., object],
    count: int | None,
    says: str,
) -> None:
    """F7 and F44: another count, a missing partition or records without identity are refused."""
    make(tmp_path)
    with pytest.raises(ConfigError, match=says):
        judge(look_at(tmp_path), count)


def test_kept_identity_when_the_folder_is_ours_then_is_as_it_was_made(tmp_path: Path) -> None:
    """An existing log keeps its ids and count, whether the configuration names the count or not."""
    identity = make_ours(tmp_path, 3)
    assert kept_identity(look_at(tmp_path), None) == identity
    assert kept_identity(look_at(tmp_path), 3) == identity
    assert new_identity(look_at(tmp_path), None) is None


def test_keep_identity_when_written_then_a_broker_would_read_it(tmp_path: Path) -> None:
    """`meta.properties` is Kafka's, version 1, and one key that a broker does not look at."""
    make_ours(tmp_path, 3)
    lines = (tmp_path / "meta.properties").read_text().splitlines()
    keys = [line.partition("=")[0] for line in lines]
    assert keys == ["version", "cluster.id", "node.id", "directory.id", "rlmm.partition.count"]
    assert lines[:2] == ["version=1", f"cluster.id={CLUSTER_ID}"]
    assert len(lines[3].partition("=")[2]) == 22


def test_kept_identity_when_made_by_a_broker_then_its_count_must_be_said(tmp_path: Path) -> None:
    """A broker's folder may hold a part of the topic: its folders are not counted for an answer."""
    make_partitions(tmp_path, 0, 1, 2)
    (tmp_path / "meta.properties").write_text(BROKER_PROPERTIES)
    with pytest.raises(ConfigError, match="3 folders do not tell"):
        kept_identity(look_at(tmp_path), None)
    assert kept_identity(look_at(tmp_path), 3) == LogIdentity(CLUSTER_ID, TOPIC_ID, 3)
    with pytest.raises(ConfigError, match=r"holds 3 .* expected are 50, .* missing is 3"):
        kept_identity(look_at(tmp_path), 50)


@pytest.mark.parametrize("text", ["0", "-1", "many", "", "٣"])
def test_kept_identity_when_a_part_is_lost_or_wrong_then_is_refused(
    tmp_path: Path, text: str
) -> None:
    """A wrong count is named; without its ids no log opens, because snapshots depend on them."""
    make_ours(tmp_path, 1)
    properties = tmp_path / "meta.properties"
    with properties.open("a") as file:
        file.write(f"rlmm.partition.count={text}\n")
    with pytest.raises(ConfigError, match=r"meta\.properties: rlmm\.partition\.count"):
        kept_identity(look_at(tmp_path), None)
    properties.write_text("version=1\nrlmm.partition.count=1\n")
    with pytest.raises(ConfigError, match="lost its cluster id"):
        kept_identity(look_at(tmp_path), None)
    make_ours(tmp_path / "other", 1)
    (tmp_path / "other" / f"{TOPIC}-0" / "partition.metadata").unlink()
    with pytest.raises(ConfigError, match="lost its topic id"):
        kept_identity(look_at(tmp_path / "other"), None)


def test_copied_identity_when_made_by_a_broker_then_is_partly_read(tmp_path: Path) -> None:
    """A partial copy beside other topics is read with the known parts of its identity."""
    make_partitions(tmp_path, 4, 17)
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "meta.properties").write_text(BROKER_PROPERTIES)
    before = listing(tmp_path)
    assert copied_identity(look_at(tmp_path), 50) == LogIdentity(CLUSTER_ID, TOPIC_ID, 50)
    assert listing(tmp_path) == before


def test_copied_identity_when_nothing_says_whose_it_is_then_is_unknown(tmp_path: Path) -> None:
    """Bare folders are readable, and their identity is unknown."""
    make_partitions(tmp_path, 4)
    (tmp_path / f"{TOPIC}-4" / "partition.metadata").unlink()
    identity = copied_identity(look_at(tmp_path), 5)
    assert identity == LogIdentity(UNKNOWN_CLUSTER_ID, UNKNOWN_TOPIC_ID, 5)


def test_copied_identity_when_complete_then_the_count_need_not_be_said(tmp_path: Path) -> None:
    """The count of a copy is Kafka's 50 when complete, or the caller's."""
    make_partitions(tmp_path, *range(PARTITION_COUNT - 1))
    with pytest.raises(ConfigError, match="49 folders do not tell"):
        copied_identity(look_at(tmp_path), None)
    make_partitions(tmp_path, PARTITION_COUNT - 1)
    assert copied_identity(look_at(tmp_path), None).partition_count == PARTITION_COUNT
    assert copied_identity(look_at(tmp_path), 60).partition_count == 60


def test_copied_identity_when_ours_then_is_as_it_was_made(tmp_path: Path) -> None:
    """A copy of our folder has its count, even with some partitions only."""
    identity = make_ours(tmp_path, 3)
    for path in (tmp_path / f"{TOPIC}-1").iterdir():
        path.unlink()
    (tmp_path / f"{TOPIC}-1").rmdir()
    assert copied_identity(look_at(tmp_path), None) == identity
    with pytest.raises(ConfigError, match="made with 3 partitions, the configuration says 4"):
        copied_identity(look_at(tmp_path), 4)


def test_look_at_when_topics_are_mixed_or_it_is_a_file_then_says_so(tmp_path: Path) -> None:
    """Partitions of two topics of one name are no log, and a file is no folder."""
    make_partitions(tmp_path, 0)
    make_partitions(tmp_path, 1, topic_id=Uuid(bytes(range(1, 17))))
    with pytest.raises(ConfigError, match="not one topic") as caught:
        look_at(tmp_path)
    for part in (TOPIC_ID, Uuid(bytes(range(1, 17)))):
        assert str(part) in str(caught.value)
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(ConfigError, match="Not a directory; name one that this user") as caught:
        look_at(path)
    assert str(path) in str(caught.value)
