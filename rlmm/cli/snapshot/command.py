"""
`rlmm snapshot`: lists, verifies, exports and imports the snapshots of a folder. These commands ask
no service. None of them removes or overwrites a file.
"""

from __future__ import annotations

import json
import signal
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlmm.base.visible_text import visible
from rlmm.cli.common.exit_codes import EXIT_FOUND
from rlmm.cli.common.output import OUTPUTS, print_table
from rlmm.cli.snapshot.folders import chosen_root, held_alone, root_to_fill, snapshot_roots
from rlmm.errors import ConfigError, InvalidArgument, RlmmError, SnapshotError
from rlmm.metadata.ids import Uuid
from rlmm.process.run import SNAPSHOT_SIGNAL
from rlmm.snapshot.atomic import SNAPSHOT_DISK
from rlmm.snapshot.files import opened
from rlmm.snapshot.folder_check import (
    examine,
    examine_stranger,
    glance,
    glance_stranger,
    stored_below,
)
from rlmm.snapshot.transfer import TAR, export, files_of, import_from

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlmm.snapshot.archive import Opener
    from rlmm.snapshot.catalog import CatalogEntry
    from rlmm.snapshot.folder_check import CheckedSnapshot
    from rlmm.snapshot.transfer import TransferResult

_YEAR_10000_MS = 253_402_300_800_000

_FOLDER = click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
_OUTPUT = click.option("--output", type=click.Choice(OUTPUTS), default="table", show_default=True)
_CLUSTER_ID = click.option(
    "--cluster-id", help="Use the log of this cluster, if the folder has several."
)


def _topic_id(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    try:
        return None if text is None else str(Uuid.parse(text))
    except InvalidArgument as error:
        raise click.BadParameter(str(error)) from error


_TOPIC_ID = click.option(
    "--topic-id",
    callback=_topic_id,
    help="Use the metadata topic with this id, if the folder has several.",
)


@click.group()
def snapshot() -> None:
    """List, verify, write, export and import snapshots."""


@snapshot.command("list")
@click.argument("path", type=click.Path(path_type=Path))
@_OUTPUT
def list_command(path: Path, *, output: str) -> None:
    """
    List the snapshots in PATH, the newest of each metadata partition first.

    PATH is a snapshot folder, the data folder of a service, a .tar from export, or one snapshot.
    Only the headers are read. Exit code 0; 1 if a snapshot cannot be used; 2 if there are none.
    """
    if path.is_file():
        found = [glance_stranger(name, opener) for name, opener in _in_file(path)]
    else:
        found = [glance(stored) for stored in _stored_below(path)]
    _finish(found, output)


@snapshot.command("verify")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@_OUTPUT
def verify_command(paths: tuple[Path, ...], *, output: str) -> None:
    """
    Verify every byte of the snapshots in PATHS.

    Each path is a snapshot folder, the data folder of a service, a .tar from export, or one
    snapshot. Exit code 0 if all are good; 1 if one is not; 2 if a folder or a .tar has none.
    """
    checks: list[Callable[[], CheckedSnapshot]] = []
    for path in paths:
        if path.is_dir():
            checks += [partial(examine, stored) for stored in _stored_below(path)]
        else:
            checks += [partial(examine_stranger, *found) for found in _in_file(path)]
    _finish([check() for check in checks], output)


@snapshot.command("export")
@_FOLDER
@click.argument("target", type=click.Path(path_type=Path))
@_CLUSTER_ID
@_TOPIC_ID
@_OUTPUT
def export_command(
    folder: Path, target: Path, *, cluster_id: str | None, topic_id: str | None, output: str
) -> None:
    """
    Copy the newest good snapshot of each metadata partition from FOLDER to TARGET.

    FOLDER is a snapshot folder, or the data folder of a service. TARGET becomes a file if its name
    ends with .tar, else a folder; it must not exist. Exit code 0; 1 if a damaged snapshot was
    skipped; 2 for a wrong TARGET, an ambiguous FOLDER, or no snapshots.
    """
    root = chosen_root(folder, cluster_id, topic_id)
    _finish_transfer("exported", lambda: export(root, target, cluster_id, topic_id), output)


@snapshot.command("import")
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@_FOLDER
@_CLUSTER_ID
@_TOPIC_ID
@_OUTPUT
def import_command(
    source: Path, folder: Path, *, cluster_id: str | None, topic_id: str | None, output: str
) -> None:
    """
    Install the snapshots of SOURCE, a folder, a .tar or one snapshot, into FOLDER.

    FOLDER is the data folder of a service or of one of its clusters, also an empty or a new one:
    the snapshots go into its folder `snapshots`, and a service that starts there uses them. Or
    FOLDER is a snapshot folder itself: it contains snapshots, or its name is `snapshots`. No
    service may run on it. All files are verified first and must be of one log, else none is
    installed. Existing files stay. The service checks the identity of the log again when it starts.
    Exit code 0; 1 if a file was refused or exists already; 2 if FOLDER is a log, ambiguous or in
    use.
    """
    root = root_to_fill(folder)
    # Whoever finds the lock may ask for snapshots, which nobody here writes.
    signal.signal(SNAPSHOT_SIGNAL, signal.SIG_IGN)
    with held_alone(root):
        _finish_transfer(
            "installed", lambda: import_from(source, root, cluster_id, topic_id), output, root
        )


def _in_file(path: Path) -> list[tuple[str, Opener]]:
    """Return the snapshots in a tar, at least one; any other file counts as a snapshot."""
    if not path.name.endswith(TAR):
        return [(str(path), lambda: opened(SNAPSHOT_DISK, path))]
    found = list(files_of(path))
    if not found:
        msg = f"{path} holds no snapshots"
        raise ConfigError(msg)
    return found


def _stored_below(folder: Path) -> list[CatalogEntry]:
    """Return the snapshots in all folders that *folder* stands for, at least one."""
    return [stored for root in snapshot_roots(folder) for stored in stored_below(root)]


def _finish(judged: Sequence[CheckedSnapshot], output: str) -> None:
    """Print, and exit with 1 if a snapshot is not good."""
    if output == "json":
        click.echo(json.dumps({"snapshots": [_as_json(found) for found in judged]}, indent=2))
    else:
        _print(judged)
        good = sum(found.is_good for found in judged)
        click.echo(f"{good} snapshots, {len(judged) - good} not usable")
    if not all(found.is_good for found in judged):
        click.get_current_context().exit(EXIT_FOUND)


def _finish_transfer(
    done: str, transfer: Callable[[], TransferResult], output: str, root: Path | None = None
) -> None:
    """Print, with the folder *root* that was filled; exit with 1 if a file was left out."""
    try:
        found = transfer()
    except OSError as error:
        msg = f"{error.filename or 'disk'}: {error.strerror or error}"
        raise SnapshotError(msg) from error
    groups = {
        done: found.done,
        "unchanged": found.unchanged,
        "refused": found.refused,
        "in_the_way": found.in_the_way,
    }
    if output == "json":
        document: dict[str, object] = {} if root is None else {"folder": str(root)}
        document |= {name: [_as_json(one) for one in judged] for name, judged in groups.items()}
        click.echo(json.dumps(document, indent=2))
    else:
        _print(found.done)
        if root is not None and found.done:
            click.echo(f"into {visible(str(root))}")
        for one in found.refused:
            click.echo(f"REFUSED {_fault(one)}")
        for one in found.in_the_way:
            click.echo(f"NOT INSTALLED {visible(one.name)}: another file stands at its place")
        click.echo(", ".join(f"{len(group)} {name}" for name, group in groups.items()))
    if not found.is_complete:
        click.get_current_context().exit(EXIT_FOUND)


def _print(judged: Sequence[CheckedSnapshot]) -> None:
    """Print one table for each log, then unusable files, one a line."""
    logs: dict[tuple[str, str, int], list[tuple[object, ...]]] = {}
    for found in judged:
        header = found.header
        if header is None:
            continue
        identity = header.identity
        key = (identity.cluster_id, str(identity.topic_id), identity.partition_count)
        history = header.history
        logs.setdefault(key, []).append(
            (
                header.partition,
                header.position,
                header.user_partitions,
                "complete" if history.is_complete else "trimmed",
                history.undecodable,
                _time(header.written_ms),
                found.size_bytes,
            )
        )
    columns = ("partition", "position", "users", "history", "undecodable", "written", "bytes")
    for (cluster_id, topic_id, count), rows in logs.items():
        print_table(
            f"cluster {visible(cluster_id)}, topic {topic_id}, {count} partitions", columns, rows
        )
    bad = [found for found in judged if not found.is_good]
    for found in bad:
        click.echo(f"NOT USABLE {_fault(found)}")


def _fault(found: CheckedSnapshot) -> str:
    error = found.error
    code = error.code if isinstance(error, RlmmError) else "unreadable"
    message = " ".join(str(error).split())
    return visible(f"{code}: {message if found.name in message else f'{found.name}: {message}'}")


def _as_json(found: CheckedSnapshot) -> dict[str, object]:
    entry: dict[str, object] = {"path": found.name, "bytes": found.size_bytes}
    header = found.header
    if header is None:
        entry["error"] = _fault(found)
        return entry
    identity, history = header.identity, header.history
    return entry | {
        "cluster_id": identity.cluster_id,
        "topic_id": str(identity.topic_id),
        "partition_count": identity.partition_count,
        "partition": header.partition,
        "position": header.position,
        "user_partitions": header.user_partitions,
        "written_ms": header.written_ms,
        "history": {
            "is_complete": history.is_complete,
            "first_offset": history.first_offset,
            "records": history.records,
            "undecodable": history.undecodable,
            "counted_apart": history.counted_apart,
            "without_base": history.without_base,
            "trimmed_before": history.trimmed_before,
        },
    }


def _time(written_ms: int) -> str:
    if written_ms >= _YEAR_10000_MS:
        return f"{written_ms} ms"
    return datetime.fromtimestamp(written_ms // 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
