"""The I/O of a store: finds and reads one snapshot while it may write another. Blocks."""

from __future__ import annotations

import errno
import logging
import time
from typing import TYPE_CHECKING

from rlmm.errors import SnapshotCorrupt, SnapshotError, SnapshotRefused
from rlmm.snapshot.atomic import make_durable_folder, write_atomically
from rlmm.snapshot.catalog import Catalog, CatalogEntry, identity_folder
from rlmm.snapshot.encoding import encode
from rlmm.snapshot.files import opened, require_identity, require_place
from rlmm.snapshot.refusal_counts import RefusalKind, SnapshotRefusal, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator
    from pathlib import Path

    from rlmm.base.threads import BackgroundWork
    from rlmm.log.protocol import LogIdentity
    from rlmm.log.shard_images import ShardImages
    from rlmm.metadata.shard import Shard
    from rlmm.snapshot.atomic import SnapshotDisk
    from rlmm.snapshot.format import SnapshotHeader
    from rlmm.snapshot.settings import SnapshotSettings

_log = logging.getLogger(__name__)

_ROOM_CHECKED_EVERY = 8 * 1024 * 1024
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class SnapshotFolder:
    def __init__(
        self,
        root: Path,
        identity: LogIdentity,
        make_shard: Callable[[int, int], Shard],
        settings: SnapshotSettings,
        disk: SnapshotDisk,
    ) -> None:
        self._root = root
        self._identity = identity
        self._make_shard = make_shard
        self._settings = settings
        self._disk = disk
        self._catalog = Catalog(identity_folder(root, identity), disk)
        self._swept: set[int] = set()
        self._durable: set[Path] = set()
        """Folders whose names are on the medium."""
        self._unforced: set[Path] = set()
        """Snapshots whose write has not ended, or not well: a crash may take them away."""

    # ------------------------------------------------------------------------------ reading

    def restore(
        self, given: BackgroundWork, partition: int, log_start: int, next_offset: int
    ) -> tuple[tuple[CatalogEntry, SnapshotHeader, Shard] | None, list[SnapshotRefusal]]:
        """Return the newest snapshot that is good and fits, its state, and newer refusals."""
        fitting, refusals = self.fitting(given, partition, log_start, next_offset)
        for stored in fitting:
            try:
                header, shard = self._load(given, stored)
            except (SnapshotError, OSError, MemoryError) as error:
                refusals.append(_refused(stored, kind_of(error), str(error)))
            else:
                return (stored, header, shard), refusals
        return None, refusals

    def fitting(
        self, given: BackgroundWork, partition: int, log_start: int, next_offset: int
    ) -> tuple[list[CatalogEntry], list[SnapshotRefusal]]:
        """
        Return the snapshots whose position fits, the newest first, and the refusals of others. Sets
        aside snapshots beyond the log end offset; the first call for *partition* removes its
        unfinished files.
        """
        fitting: list[CatalogEntry] = []
        refusals: list[SnapshotRefusal] = []
        try:
            if partition not in self._swept:
                self._sweep(given, partition)
            found = self._catalog.newest_first(partition)
        except OSError as error:
            return [], [self.unread(partition, error)]
        for stored in found:
            given.go_on()  # a caller that has gone may have written newer ones
            if stored.position > next_offset:
                refusals.append(self._set_aside(stored, next_offset))
            elif stored.position < log_start:
                detail = f"the log begins at {log_start}"
                refusals.append(_refused(stored, RefusalKind.BEFORE_LOG, detail))
            else:
                fitting.append(stored)
        return fitting, refusals

    def unread(self, partition: int, error: Exception) -> SnapshotRefusal:
        """Return the refusal of all snapshots of *partition*, which the disk did not read."""
        folder = CatalogEntry(self._catalog.folder_of(partition), partition, 0, 0)
        return _refused(folder, RefusalKind.UNREADABLE, str(error))

    def _sweep(self, given: BackgroundWork, partition: int) -> None:
        for path in self._catalog.sweep(partition, given.go_on):
            _log.info("removed %s: a crash left it unfinished", path)
        self._swept.add(partition)

    def _set_aside(self, stored: CatalogEntry, next_offset: int) -> SnapshotRefusal:
        detail = f"the log holds its history up to {next_offset} at most; set aside"
        try:
            self._catalog.set_aside(stored)
        except OSError as error:
            detail = (
                f"the log holds its history up to {next_offset} at most; not set aside: {error}"
            )
        return _refused(stored, RefusalKind.BEYOND_LOG, detail)

    def _load(self, given: BackgroundWork, stored: CatalogEntry) -> tuple[SnapshotHeader, Shard]:
        """Verify in one pass, then import in another."""
        with opened(self._disk, stored.path, given.go_on) as file:
            header = file.verify()
            require_identity(header, self._identity)
            require_place(header, stored.partition, stored.position)
            reader = file.reader()
            if reader.header != header:
                raise SnapshotCorrupt("it changed while it was read")
            shard = self._make_shard(header.partition, header.position)
            shard.place_among(self._identity.partition_count)
            for image in reader.images(shard.import_images):
                given.go_on()
                shard.import_partition(image)
                _give_way()
        _log.info(
            "metadata partition %d restored at position %d from %s: %d user partitions",
            header.partition, header.position, stored.path, header.user_partitions,
            extra=_where(header.partition, header.position),
        )  # fmt: skip
        return header, shard

    # ------------------------------------------------------------------------------ writing

    def write(
        self,
        given: BackgroundWork,
        header: SnapshotHeader,
        frozen: ShardImages,
        expected_bytes: int,
    ) -> CatalogEntry:
        """
        Put a snapshot on the medium; the others stay. Raises `SnapshotRefused` when it would leave
        too little room, `SnapshotError` when it cannot be written or the log was cut meanwhile.
        """
        path = self._catalog.path_of(header.partition, header.position)
        where = f"metadata partition {header.partition} at position {header.position}"
        try:
            self._make_folder(path.parent)
            self._require_room(path.parent, expected_bytes)
            chunks = encode(header, _giving_way(given, frozen.parts))
            watched = self._watched(given, path.parent, chunks)

            def go_on() -> None:
                given.go_on()
                require_valid(frozen)
                self._unforced.add(path)  # a restore may read it from now on
                self._catalog.void.discard(path)

            size = write_atomically(self._disk, path, watched, go_on)
            if not frozen.is_valid():  # the cut came between the last look and the rename
                self._disk.remove(path)
                require_valid(frozen)
            self._unforced.discard(path)
        except OSError as error:
            kind = SnapshotRefused if error.errno in _NO_ROOM else SnapshotError
            msg = f"{where}: no snapshot written to {path}: {error.strerror or error}"
            raise kind(msg) from error
        except SnapshotRefused as error:
            msg = f"{where}: no snapshot written to {path}: {error}"
            raise SnapshotRefused(msg) from error
        _log.debug(
            "%s: snapshot of %d bytes written to %s", where, size, path,
            extra=_where(header.partition, header.position),
        )  # fmt: skip
        return CatalogEntry(path, header.partition, header.position, size)

    def is_sure(self, path: Path) -> bool:
        """Return whether a snapshot that was read or written at *path* is on the medium."""
        return path not in self._unforced and path not in self._catalog.void

    def _make_folder(self, folder: Path) -> None:
        if folder not in self._durable or not folder.exists():
            make_durable_folder(self._disk, folder, self._root)
            self._durable.add(folder)

    def prune(
        self, newest: CatalogEntry, damaged: Container[Path], foreign: Container[Path]
    ) -> None:
        """Remove the snapshots that *newest* replaces; a failure is logged."""
        try:
            self._catalog.prune(newest, self._settings.generations, damaged, foreign)
        except OSError as error:
            _log.warning(
                "metadata partition %d: older snapshots beside %s could not be removed: %s",
                newest.partition, newest.path, error,
                extra=_where(newest.partition, newest.position),
            )  # fmt: skip

    def _watched(
        self, given: BackgroundWork, folder: Path, chunks: Iterable[bytes]
    ) -> Iterator[bytes]:
        unchecked = 0
        for chunk in chunks:
            given.go_on()
            unchecked += len(chunk)
            if unchecked >= _ROOM_CHECKED_EVERY:
                self._require_room(folder, unchecked)
                unchecked = 0
            yield chunk

    def free_bytes(self) -> int | None:
        """`None` where the disk does not say."""
        for folder in (self._root, *self._root.parents):
            try:
                return self._disk.free_bytes(folder)
            except FileNotFoundError:
                continue  # it will be made on the disk of the one above it
            except OSError:
                break
        return None

    def _require_room(self, folder: Path, coming_bytes: int) -> None:
        free = self._disk.free_bytes(folder)
        if free - coming_bytes < self._settings.free_bytes_min:
            msg = (
                f"{free} bytes are free, about {coming_bytes} would be written and "
                f"{self._settings.free_bytes_min} must stay free: make room"
            )
            raise SnapshotRefused(msg)


def require_valid(frozen: ShardImages) -> None:
    """Raise `SnapshotError` where the log was cut since the state was frozen."""
    if not frozen.is_valid():
        msg = (
            f"metadata partition {frozen.partition} at position {frozen.position}: no snapshot is "
            "kept, the log was cut while it was written"
        )
        raise SnapshotError(msg)


def _giving_way(
    given: BackgroundWork, parts: Iterable[Callable[[], bytes]]
) -> Iterator[Callable[[], bytes]]:
    for part in parts:
        given.go_on()
        yield part
        _give_way()


def _give_way() -> None:
    """Release the interpreter's lock between user partitions: halves other tasks' longest wait."""
    time.sleep(0)


def _where(partition: int, position: int) -> dict[str, object]:
    return {"metadata_partition": partition, "offset": position}


def _refused(stored: CatalogEntry, kind: RefusalKind, detail: str) -> SnapshotRefusal:
    _log.warning(
        "metadata partition %d, position %d: snapshot %s is not used, it is %s: %s",
        stored.partition, stored.position, stored.path, kind, detail,
        extra=_where(stored.partition, stored.position),
    )  # fmt: skip
    return SnapshotRefusal(stored.path, stored.partition, stored.position, kind, detail)
