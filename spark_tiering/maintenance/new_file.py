"""A new file that exists whole or not at all, and never replaces another."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rlmm.base.folder_lock import NO_ROOM
from rlmm.errors import ConfigError, LogUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator


def require_free(path: Path) -> None:
    """Raise `ConfigError` where *path* exists, or could not be made."""
    if path.exists() or path.is_symlink():
        raise ConfigError(f"{path} is there already, and nothing is overwritten: name another")
    if not path.parent.is_dir():
        raise ConfigError(f"{path.parent}: there is no such folder")


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Write a new file, synced at the end of the block, else nothing. Raise `ConfigError`."""
    require_free(path)
    try:
        descriptor, name = tempfile.mkstemp(".tmp", f".{path.name}.", path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
            except OSError as error:
                raise _unwritable(path, error) from error
        _name(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()


def _name(temporary: Path, path: Path) -> None:
    try:
        mask = os.umask(0o077)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        try:
            os.link(temporary, path)
        except FileExistsError:
            require_free(path)
            raise
        except OSError:
            # A file system without hard links: then between these two somebody could come.
            require_free(path)
            temporary.rename(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> ConfigError | LogUnavailable:
    msg = f"{path}: {error.strerror or error}"
    return LogUnavailable(msg) if error.errno in NO_ROOM else ConfigError(msg)
