"""
Watched files: secrets and certificates are loaded again when an operator replaces them.

Invariant: the value in use is complete. A failed load is reported once, and the old value stays.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from rlmm.base.private_files import read_regular
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

_log = logging.getLogger(__name__)

_Read = TypeVar("_Read")
_Seen = tuple[tuple[int, ...] | None, ...]
FILE_BYTES_MAX: Final = 1024 * 1024
"""Far more than any of these files has; a larger one was named by mistake."""


class FromFiles(Generic[_Read]):
    def __init__(
        self, what: str, paths: Collection[Path], read: Callable[[_Read | None], _Read]
    ) -> None:
        """Read the files; *read* gets the value in use. Both raise a secretless `ConfigError`."""
        self._what = what
        self._paths = tuple(paths)
        self._read = read
        self.reloads = 0
        self.failures = 0
        self.is_unusable = False
        self._seen = self._signature()
        self.value = read(None)

    def look(self) -> bool:
        """Load the files if they have changed; true if the value was replaced."""
        seen = self._signature()
        if seen == self._seen:
            return False
        # Seen before it is read: what changes in between is found by the next look.
        self._seen = seen
        try:
            self.value = self._read(self.value)
        except ConfigError as error:
            self.failures += 1
            self.is_unusable = True
            _log.error("%s changed and cannot be used; nothing changes: %s", self._what, error)
            return False
        self.reloads += 1
        self.is_unusable = False
        _log.info("%s changed and was read again", self._what)
        return True

    def _signature(self) -> _Seen:
        return tuple(map(_seen_of, self._paths))


def _seen_of(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def text_of(path: Path, key: str) -> str:
    try:
        data = read_regular(path, FILE_BYTES_MAX + 1)
    except OSError as error:
        msg = f"{key} {path} cannot be read: {error.strerror}"
        raise ConfigError(msg) from error
    if len(data) > FILE_BYTES_MAX:
        msg = f"{key} {path} must not be larger than {FILE_BYTES_MAX} bytes"
        raise ConfigError(msg)
    try:
        return data.decode()
    except UnicodeDecodeError:
        msg = f"{key} {path} must be a text in UTF-8"
        raise ConfigError(msg) from None
