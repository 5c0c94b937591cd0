"""The Unix socket and its file: made with its mode before a client can connect. Blocks."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError, FolderInUse
from rlmm.sidecar.settings import SOCKET_PATH_BYTES_MAX

if TYPE_CHECKING:
    from pathlib import Path

_UNFINISHED = ".new"
_CONNECT_S = 1.0


class UnixSocket:
    def __init__(self, path: Path, mode: int, backlog: int) -> None:
        """
        Listen at *path*, replacing the file of a dead process.

        Raises `FolderInUse` where another process listens, `ConfigError` where no socket can be.
        """
        self.path = path
        _require_short(path)
        _require_free(path)
        unfinished = path.with_name(path.name + _UNFINISHED)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with suppress(FileNotFoundError):
                unfinished.unlink()
            self.socket.bind(str(unfinished))
            unfinished.chmod(mode)
            self.socket.listen(backlog)
            self.socket.setblocking(False)
            found = unfinished.stat()
            self._file = found.st_dev, found.st_ino
            unfinished.replace(path)
        except OSError as error:
            self.socket.close()
            msg = f"sidecar.unix_path {path} cannot be used: {error.strerror or error}"
            raise ConfigError(msg) from error

    def remove(self) -> None:
        """Remove the file, unless another process has replaced it."""
        with suppress(OSError):
            found = self.path.lstat()
            if (found.st_dev, found.st_ino) == self._file:
                self.path.unlink()


def _require_short(path: Path) -> None:
    size = len(os.fsencode(path))
    if size > SOCKET_PATH_BYTES_MAX:
        msg = (
            f"sidecar.unix_path {path} has {size} bytes, no path of a socket may have more than "
            f"{SOCKET_PATH_BYTES_MAX}: choose a shorter one"
        )
        raise ConfigError(msg)


def _require_free(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        msg = f"sidecar.unix_path {path} cannot be used: {error.strerror or error}"
        raise ConfigError(msg) from error
    if not stat.S_ISSOCK(found.st_mode):
        msg = f"sidecar.unix_path {path} is there and is no socket: choose another"
        raise ConfigError(msg)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_CONNECT_S)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return
        except OSError:  # a process listens and is busy, or this user may not connect
            pass
    msg = f"sidecar.unix_path {path} is in use by another process; choose another"
    raise FolderInUse(msg)
