"""The files of a partition in a folder that this process sees: the only module here with I/O."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from rlmm.base.private_files import open_regular
from rlmm.errors import ConfigError, LogNotPermitted, LogUnavailable
from spark_tiering.segments.partition_files import SourceFileFacts


@dataclass(frozen=True, slots=True)
class PartitionFolder:
    """A partition's folder, `<topic>-<partition>`, by its path. Nothing stays open."""

    path: str

    def facts(self) -> dict[str, SourceFileFacts]:
        """Return every file by its name; `ConfigError` when there is no such folder."""
        found: dict[str, SourceFileFacts] = {}
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    try:
                        if entry.is_file():
                            status = entry.stat()
                            modified_ms = status.st_mtime_ns // 1_000_000
                            found[entry.name] = SourceFileFacts(status.st_size, modified_ms)
                    except FileNotFoundError:
                        continue
        except (FileNotFoundError, NotADirectoryError) as error:
            msg = f"no partition's folder: {self.path}"
            raise ConfigError(msg) from error
        except OSError as error:
            _refuse(self.path, error)
        return found

    def read(self, name: str, start: int, size: int) -> bytes:
        """Return the bytes [start, start + size) of a file; fewer, or none, where it ends."""
        path = Path(self.path, name)
        try:
            descriptor = open_regular(path)
            try:
                return os.pread(descriptor, size, start)
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return b""
        except OSError as error:
            _refuse(str(path), error)


def _refuse(path: str, error: OSError) -> NoReturn:
    if isinstance(error, PermissionError):
        msg = f"not permitted to read {path}: {error.strerror}"
        raise LogNotPermitted(msg) from error
    msg = f"{path} could not be read: {error.strerror}"
    raise LogUnavailable(msg) from error
