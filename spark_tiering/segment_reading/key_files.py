"""A key ring from its files. Workers get the path, and each process reads the files itself."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlmm.base.private_files import require_private
from rlmm.errors import ConfigError
from spark_tiering.layout.encryption import PrivateKey
from spark_tiering.layout.key_ring import KEY_BYTES_MAX, RING_BYTES_MAX, KeyRing, parse_key_ring

if TYPE_CHECKING:
    from collections.abc import Mapping

WHAT = "the key ring"


@dataclass(frozen=True, slots=True)
class KeyRingSettings:
    """Names the place of the ring, the same on every machine. It holds no secret."""

    file: str


def read_key_ring(settings: KeyRingSettings) -> KeyRing:
    """Return the ring and its keys; raises `ConfigError`, also where every user may read a file."""
    return _read(settings)[0]


def process_key_ring(settings: KeyRingSettings | None) -> KeyRing | None:
    """Return the ring of this process, read again when its file has changed."""
    if settings is None:
        return None
    with _lock:
        found = _kept.get(settings)
        if found is None or found[1] != _stamps_of(found[1]):
            found = _kept[settings] = _read(settings)
        return found[0]


_kept: dict[KeyRingSettings, tuple[KeyRing, Mapping[str, tuple[int, int]]]] = {}
_lock = threading.Lock()


def _read(settings: KeyRingSettings) -> tuple[KeyRing, Mapping[str, tuple[int, int]]]:
    ring = Path(settings.file)
    stamps = {str(ring): _stamp(str(ring))}
    keys = {}
    for key_id, name in parse_key_ring(_content(ring, RING_BYTES_MAX), str(ring)).items():
        path = ring.parent / name
        stamps[str(path)] = _stamp(str(path))
        keys[key_id] = PrivateKey(_content(path, KEY_BYTES_MAX), str(path))
    return KeyRing(keys), stamps


def _content(path: Path, bytes_max: int) -> bytes:
    require_private(path, WHAT, gives_rights=False)
    try:
        with path.open("rb") as file:
            content = file.read(bytes_max + 1)
    except OSError as error:
        msg = f"{WHAT} {path} cannot be read: {error.strerror}"
        raise ConfigError(msg) from error
    if len(content) > bytes_max:
        msg = f"{WHAT} {path}: more than {bytes_max} bytes"
        raise ConfigError(msg)
    return content


def _stamps_of(files: Mapping[str, tuple[int, int]]) -> Mapping[str, tuple[int, int]]:
    return {name: _stamp(name) for name in files}


def _stamp(name: str) -> tuple[int, int]:
    try:
        status = os.stat(name)  # noqa: PTH116 - a text, for whom a path would be made each time
    except OSError:
        return (-1, -1)
    return (status.st_mtime_ns, status.st_size)
