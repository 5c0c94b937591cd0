"""
A local folder as a store: the embedded default, with the contract of a bucket. A hard link names an
object, so it is whole or absent and one of two writers wins. Where `x` is an object, `x/y` can be
none.
"""

from __future__ import annotations

import errno
import os
import stat
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError, StoreAbsent, StoreUnsuitable
from spark_tiering.stores.conditional_put_probe import refuses_second_put
from spark_tiering.stores.content import FileContent, MeasuredPieces, stream_of, walk_through
from spark_tiering.stores.local_files import (
    NOT_THERE,
    list_keys,
    list_level,
    make_folders,
    raise_store_error,
    read_range,
    refused_or_raise,
    sync_folder,
)
from spark_tiering.stores.object_reading import compare
from spark_tiering.stores.protocol import RESERVED, OpenedStore, check_key, check_range
from spark_tiering.stores.results import (
    ObjectAbsent,
    ObjectFacts,
    ObjectWritten,
    OpenUpload,
    PutRefusal,
    PutRefused,
    PutUnknown,
    RangeBeyondObject,
    StoreTraits,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.stores.content import ContentStream, ObjectContent
    from spark_tiering.stores.local_settings import LocalSettings
    from spark_tiering.stores.results import (
        ContentSum,
        GetOutcome,
        ListedFolder,
        ListedObject,
        PutOutcome,
    )

WRITING = f"{RESERVED}writing"
NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.EXDEV}


class LocalStore(OpenedStore):
    """The objects in a folder, made where its parent exists, else `StoreAbsent` on use."""

    def __init__(self, settings: LocalSettings) -> None:
        self._root = Path(settings.folder)
        self._writing = self._root / WRITING
        self._is_synced = settings.is_synced
        try:
            self._make_root(is_made=settings.is_made)
        except FileNotFoundError as error:
            msg = f"there is no folder {self._root.parent} to make the store {self._root} in"
            raise StoreAbsent(msg) from error
        except FileExistsError as error:
            msg = f"the store {self._root} is no folder"
            raise ConfigError(msg) from error
        except OSError as error:
            raise_store_error("open", self._root, error)

    def _make_root(self, *, is_made: bool) -> None:
        if is_made:
            self._root.mkdir(exist_ok=True)
        elif self._root.exists() and not self._root.is_dir():
            raise FileExistsError(errno.EEXIST, "it is no folder", str(self._root))
        elif not self._root.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "no such folder", str(self._root.parent))

    def __repr__(self) -> str:
        return f"LocalStore({str(self._root)!r})"

    def close(self) -> None: ...

    def put(self, key: str, content: ObjectContent) -> PutOutcome:
        there = compare(self, key, content.sum)
        return self._write(key, stream_of(content)) if isinstance(there, ObjectAbsent) else there

    def put_stream(self, key: str, stream: ContentStream) -> PutOutcome:
        if isinstance(self.head(key, is_sum_wanted=False), ObjectAbsent):
            return self._write(key, stream)
        passed = walk_through(stream)
        return passed if isinstance(passed, PutRefused) else self._compared(key, passed)

    def head(self, key: str, *, is_sum_wanted: bool = True) -> ObjectFacts | ObjectAbsent:
        """Return length and time of a file; its checksum is computed from the file."""
        check_key(key)
        path = self._root / key
        try:
            found = path.stat()
            if not stat.S_ISREG(found.st_mode):
                return self._absent(key)
            crc64nvme = FileContent(path).sum.crc64nvme if is_sum_wanted else None
        except OSError as error:
            if error.errno in NOT_THERE:
                return self._absent(key)
            raise_store_error("head", path, error)
        return ObjectFacts(found.st_size, crc64nvme, found.st_mtime_ns // 1_000_000)

    def get(self, key: str, first_byte: int, last_byte: int) -> GetOutcome:
        check_key(key)
        check_range(first_byte, last_byte)
        path = self._root / key
        try:
            found = read_range(path, first_byte, last_byte)
        except OSError as error:
            if error.errno in NOT_THERE:
                return self._absent(key)
            raise_store_error("get", path, error)
        return RangeBeyondObject(key, first_byte) if found is None else found

    def list(self, prefix: str = "") -> Iterator[ListedObject]:
        self._absent(prefix)
        try:
            yield from list_keys(self._root, prefix, RESERVED)
        except OSError as error:
            raise_store_error("list", self._root, error)

    def level(self, prefix: str = "") -> Iterator[ListedObject | ListedFolder]:
        self._absent(prefix)
        try:
            yield from list_level(self._root, prefix, RESERVED)
        except OSError as error:
            raise_store_error("list", self._root, error)

    def delete(self, key: str) -> None:
        check_key(key)
        path = self._root / key
        try:
            path.unlink()
            if self._is_synced:
                sync_folder(path.parent)
        except OSError as error:
            if error.errno not in NOT_THERE:
                raise_store_error("delete", path, error)
            self._absent(key)

    def open_uploads(self, prefix: str = "") -> Iterator[OpenUpload]:
        self._absent(prefix)
        try:
            folders = sorted(self._writing.iterdir()) if self._writing.is_dir() else []
            for folder in folders:
                began_ms = folder.stat().st_mtime_ns // 1_000_000
                for found in list_keys(folder, prefix, RESERVED):
                    yield OpenUpload(found.key, folder.name, began_ms)
        except OSError as error:
            if error.errno not in NOT_THERE:
                raise_store_error("list", self._writing, error)

    def abort_upload(self, upload: OpenUpload) -> None:
        check_key(upload.key)
        check_key(upload.upload_id)
        try:
            self._forget(self._writing / upload.upload_id / upload.key)
        except OSError as error:
            raise_store_error("abort", self._writing, error)

    def probe(self, prefix: str) -> StoreTraits:
        is_refused = refuses_second_put(self, prefix)
        return StoreTraits(is_refused, is_refused, checks_sums=True, tells_sums=True)

    def _absent(self, key: str) -> ObjectAbsent:
        if not self._root.is_dir():
            msg = f"the folder {self._root} of the store is not there"
            raise StoreAbsent(msg)
        return ObjectAbsent(key)

    def _compared(self, key: str, expected: ContentSum) -> PutOutcome:
        there = compare(self, key, expected)
        if isinstance(there, ObjectAbsent):
            return PutUnknown(f"{key}: it was there, and was taken away meanwhile")
        return there

    def _write(self, key: str, stream: ContentStream) -> PutOutcome:
        path, written = self._root / key, self._writing / uuid.uuid4().hex / key
        try:
            made = self._fill(written, stream)
            return (
                made if isinstance(made, PutRefused) else self._give_name(key, written, path, made)
            )
        except OSError as error:
            return refused_or_raise("put", path, error)
        finally:
            with suppress(OSError):
                self._forget(written)

    def _fill(self, written: Path, stream: ContentStream) -> ContentSum | PutRefused:
        make_folders(written.parent, self._root, is_synced=False)
        measured = MeasuredPieces(stream.pieces)
        with written.open("xb", buffering=0) as file:
            for piece in measured:
                rest = memoryview(piece)
                while rest:
                    rest = rest[file.write(rest) :]
            refused = measured.judge(stream.told())
            if refused is None and self._is_synced:
                os.fsync(file.fileno())
        return refused or measured.sum

    def _give_name(self, key: str, written: Path, path: Path, made: ContentSum) -> PutOutcome:
        make_folders(path.parent, self._root, is_synced=self._is_synced)
        try:
            os.link(written, path)
        except FileExistsError:
            return self._compared(key, made)
        except FileNotFoundError:
            return PutRefused(
                PutRefusal.SWEPT, f"{key}: {written} was taken away while it was written"
            )
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            msg = f"{self._root}: its file system has no hard links, so no write can be conditional"
            raise StoreUnsuitable(msg) from error
        try:
            if self._is_synced:
                sync_folder(path.parent)
        except OSError as error:
            return PutUnknown(f"{key}: written, and its folder could not be synced: {error}")
        return ObjectWritten(made.size_bytes, made.crc64nvme)

    def _forget(self, written: Path) -> None:
        written.unlink(missing_ok=True)
        for folder in written.parents:
            if folder == self._writing:
                return
            with suppress(FileNotFoundError, OSError):
                folder.rmdir()
