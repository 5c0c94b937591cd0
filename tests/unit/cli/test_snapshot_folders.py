"""`rlmm snapshot` on a data folder: where it looks, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlmm.base.folder_lock import folder_lock, snapshots_lock
from rlmm.cli import main
from rlmm.cli.common import exit_codes
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.ids import Uuid
from rlmm.snapshot.transfer import TransferResult
from tests.support.engine.snapshots import IDENTITY, frozen_of, segments, shard_of, store_in

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from click.testing import Result

OTHER = LogIdentity("other-cluster", Uuid(bytes(range(1, 17))), 50)


def fill(root: Path, identity: LogIdentity = IDENTITY, *partitions: int) -> None:
    async def write() -> None:
        store = store_in(root, identity=identity)
        for partition in partitions or (3,):
            await store.write(frozen_of(shard_of(segments(1), partition)))

    asyncio.run(write())


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main.cli, ["snapshot", *map(str, arguments)])


def counted(result: Result) -> int:
    return len(json.loads(result.stdout)["snapshots"])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "log" / "__remote_log_metadata-0").mkdir(parents=True)
    (folder / "rlmm.lock").touch()
    fill(folder / "snapshots", IDENTITY, 3, 4)
    return folder


@pytest.fixture
def clusters(tmp_path: Path) -> Path:
    folder = tmp_path / "several"
    fill(folder / "clusters" / "east" / "snapshots", IDENTITY, 1)
    fill(folder / "clusters" / "west" / "snapshots", OTHER, 1, 2)
    (folder / "clusters" / "new" / "snapshots").mkdir(parents=True)
    (folder / "clusters" / "file").touch()
    return folder


@pytest.mark.parametrize("command", ["list", "verify"])
def test_data_folder_when_looked_at_then_its_snapshots_are_found(
    data: Path, clusters: Path, command: str
) -> None:
    """The command finds the snapshots of a service, of each cluster, and one by its file."""
    for folder, count in (
        (data, 2),
        (data / "snapshots", 2),
        (clusters, 3),
        (clusters / "clusters" / "west", 2),
        (next(data.rglob("3/*.snapshot")), 1),
    ):
        result = run(command, folder, "--output", "json")
        assert (result.exit_code, counted(result)) == (0, count), folder
    shutil.copytree(data / "snapshots", clusters / "snapshots")
    assert counted(run(command, clusters, "--output", "json")) == 5


@pytest.mark.parametrize("command", ["list", "verify", "export"])
@pytest.mark.parametrize(
    "folders",
    [
        [],
        ["snapshots"],
        ["log/__remote_log_metadata-0"],
        ["snapshots/cluster/topic/3"],
        ["clusters/east/snapshots/cluster/topic/3"],
    ],
    ids=["empty", "no-snapshots", "log", "empty-folders", "empty-folders-of-a-cluster"],
)
def test_folder_when_there_are_no_snapshots_then_ends_with_2_and_says_where_it_looked(
    tmp_path: Path, command: str, folders: list[str]
) -> None:
    """The command ends with exit code 2 when it finds no snapshot."""
    data = tmp_path / "data"
    data.mkdir()
    for name in folders:
        (data / name).mkdir(parents=True)
    target = [tmp_path / "backup.tar"] if command == "export" else []
    result = run(command, data, *target)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert f"{data} holds no snapshots: neither itself, nor in snapshots or" in result.stderr
    assert not (tmp_path / "backup.tar").exists()


def test_verify_when_one_of_several_folders_has_none_then_ends_with_2(
    data: Path, tmp_path: Path
) -> None:
    """A wrong name among right ones is not passed over."""
    assert run("verify", data, tmp_path).exit_code == 2


def test_export_when_folders_without_snapshots_stand_beside_then_they_do_not_count(
    data: Path, tmp_path: Path
) -> None:
    """Folders without snapshots do not count as further clusters."""
    (data / "snapshots" / "was-here" / str(OTHER.topic_id) / "3").mkdir(parents=True)
    result = run("export", data, tmp_path / "backup.tar")
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith("2 exported, 0 unchanged, 0 refused, 0 in_the_way\n")


def test_export_when_several_clusters_have_some_then_one_must_be_named(
    clusters: Path, tmp_path: Path
) -> None:
    """The refusal names those there are; each can be had by its cluster or topic."""
    result = run("export", clusters, tmp_path / "a.tar")
    assert result.exit_code == 2
    assert f"clusters/west/snapshots/{OTHER.cluster_id}/{OTHER.topic_id}" in result.stderr
    assert "holds snapshots of 2 logs" in result.stderr
    result = run("export", clusters, tmp_path / "a.tar", "--cluster-id", OTHER.cluster_id)
    assert result.stdout.endswith("2 exported, 0 unchanged, 0 refused, 0 in_the_way\n")
    result = run("export", clusters, tmp_path / "b.tar", "--topic-id", str(IDENTITY.topic_id))
    assert result.stdout.endswith("1 exported, 0 unchanged, 0 refused, 0 in_the_way\n")


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("fresh", "fresh/snapshots"),
        ("fresh/snapshots", "fresh/snapshots"),
        ("emptied", "emptied/snapshots"),
        ("filled", "filled"),
        ("with-log", "with-log/snapshots"),
        ("with-snapshots", "with-snapshots/snapshots"),
        ("with-snapshots/snapshots", "with-snapshots/snapshots"),
        ("several/clusters/new", "several/clusters/new/snapshots"),
        ("several/clusters/west", "several/clusters/west/snapshots"),
    ],
    ids=[
        "new",
        "new-snapshots",
        "empty",
        "filled",
        "log",
        "snapshots",
        "snapshots-itself",
        "new-cluster",
        "cluster",
    ],
)
def test_import_when_given_a_data_folder_then_fills_its_snapshots(
    data: Path, clusters: Path, tmp_path: Path, target: str, place: str
) -> None:
    """The import writes to the folder in which the service looks."""
    del clusters
    (tmp_path / "with-log" / "log").mkdir(parents=True)
    (tmp_path / "with-snapshots" / "snapshots").mkdir(parents=True)
    (tmp_path / "emptied").mkdir()
    (tmp_path / "emptied" / "rlmm.lock").touch()
    fill(tmp_path / "filled", OTHER, 1)
    result = run("import", data, tmp_path / target)
    assert result.exit_code == 0, result.output
    log = tmp_path / place / IDENTITY.cluster_id / str(IDENTITY.topic_id)
    assert sorted(path.name for path in log.iterdir()) == ["3", "4"]
    assert f"into {tmp_path / place}\n" in result.stdout


@pytest.mark.parametrize(
    ("target", "names", "message"),
    [
        ("d/log", ["d/rlmm.lock"], "is where the log of"),
        ("d/log", ["d/snapshots/"], "is where the log of"),
        ("d/clusters/east/log", [], "is where the log of"),
        ("d", ["d/.lock"], "d is a log"),
        ("d", ["d/meta.properties"], "d is a log"),
        ("d", [f"d/topic-0/{0:020d}.log"], "d is a log"),
        ("d", [f"d/{0:020d}.log"], "d is a log"),
        ("d/new", ["d/meta.properties"], "which is a log"),
        ("d/log/topic-0/snapshots", [f"d/log/topic-0/{0:020d}.log"], "which is a log"),
        ("d", ["d/clusters/east/snapshots/"], "name that of one: {0}/d/clusters/east"),
        ("d/clusters", [], "name that of one, below it"),
        ("d/clusters", ["d/clusters/east/log/"], "name that of one, below it"),
        ("d", ["d/thesis.txt"], "e.g. thesis.txt"),
    ],
)
def test_import_when_the_folder_is_no_place_for_snapshots_then_is_refused_by_name(
    tmp_path: Path, target: str, names: list[str], message: str
) -> None:
    """The import refuses a log's folder, which foreign files would break, and makes nothing."""
    fill(tmp_path / "source", IDENTITY, 9)
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.touch()
    before = sorted(tmp_path.rglob("*"))
    result = run("import", tmp_path / "source", tmp_path / target)
    assert result.exit_code == 2, result.output
    assert message.format(tmp_path) in result.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("command", ["list", "verify"])
def test_tar_of_an_export_when_looked_at_then_its_snapshots_are_found(
    data: Path, tmp_path: Path, command: str
) -> None:
    """The command lists the snapshots in a tar of an export, and fails for a tar without any."""
    assert run("export", data, tmp_path / "backup.tar").exit_code == 0
    result = run(command, tmp_path / "backup.tar", "--output", "json")
    assert (result.exit_code, counted(result)) == (0, 2), result.output
    (one, _) = json.loads(result.stdout)["snapshots"]
    assert one["path"].startswith(f"{tmp_path / 'backup.tar'}:{IDENTITY.cluster_id}/")
    (tmp_path / "empty.tar").write_bytes(bytes(1_024))
    result = run(command, tmp_path / "empty.tar")
    assert result.exit_code == 2, result.output
    assert "empty.tar holds no snapshots" in result.stderr


def test_tar_of_an_export_when_a_bit_differs_then_only_verify_finds_it(
    data: Path, tmp_path: Path
) -> None:
    """The whole of each snapshot in it is checked."""
    tar = tmp_path / "backup.tar"
    assert run("export", data, tar).exit_code == 0
    content = bytearray(tar.read_bytes())
    size = next(data.rglob("3/*.snapshot")).stat().st_size
    content[512 + size - 50] ^= 1
    tar.write_bytes(content)
    assert run("list", tar).exit_code == 0
    result = run("verify", tar)
    assert result.exit_code == 1, result.output
    assert "NOT USABLE snapshot-corrupt" in result.stdout


def test_import_when_asked_for_snapshots_meanwhile_then_goes_on(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import ignores the signal by which another process requests snapshots."""
    fill(tmp_path / "source", IDENTITY, 9)
    before = signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    seen: list[object] = []

    def import_from(*_: object) -> TransferResult:
        seen.append(signal.getsignal(signal.SIGUSR1))
        return TransferResult()

    monkeypatch.setattr("rlmm.cli.snapshot.command.import_from", import_from)
    try:
        assert run("import", tmp_path / "source", data).exit_code == 0
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [signal.SIG_IGN]


def lock_of(place: Path) -> AbstractContextManager[None]:
    return snapshots_lock(place) if place.name == "snapshots" else folder_lock(place)


@pytest.mark.parametrize(
    ("held", "target"),
    [
        ("data", "data"),
        ("data", "data/snapshots"),
        ("data", "data/some/where"),
        ("data/snapshots", "data"),
        ("several", "several/clusters/west"),
        ("several", "several/clusters/west/snapshots"),
        ("several/clusters/west/snapshots", "several/clusters/west"),
    ],
    ids=str,
)
def test_import_when_the_folder_is_in_use_then_is_refused_by_name(
    data: Path, clusters: Path, tmp_path: Path, held: str, target: str
) -> None:
    """The refusal names the process with the lock, and installs nothing."""
    fill(tmp_path / "source", IDENTITY, 9)
    del data, clusters
    was_there = (tmp_path / target).parent.exists()
    with lock_of(tmp_path / held):
        result = run("import", tmp_path / "source", tmp_path / target)
    assert result.exit_code == 2, result.output
    message = f"{(tmp_path / held).resolve()} is in use by process {os.getpid()}, which keeps"
    assert message in result.stderr
    assert not list((tmp_path / target).rglob("9/*.snapshot"))
    assert (tmp_path / target).parent.exists() is was_there
    assert run("import", tmp_path / "source", tmp_path / target).exit_code == 0


def test_import_when_nobody_holds_the_folder_then_holds_it_meanwhile(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import holds the lock, so no service starts on the folder."""
    fill(tmp_path / "source", IDENTITY, 9)
    tried: list[str] = []

    def import_from(*_: object) -> None:
        try:
            with folder_lock(data):
                pass
        except Exception as error:  # noqa: BLE001 - whatever it is, it is looked at below
            tried.append(str(error))
        raise KeyboardInterrupt

    monkeypatch.setattr("rlmm.cli.snapshot.command.import_from", import_from)
    assert run("import", tmp_path / "source", data).exit_code == exit_codes.EXIT_INTERRUPTED
    assert "in use by process" in tried[0]
    with folder_lock(data):
        pass
