"""
The local token: the service generates it, so that its own user can read without configuration.

It stays the same until its file is removed. Invariant: a file that other users may read is refused,
and the file never holds a partial token.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from rlmm.access.tokens import is_token, require_private
from rlmm.access.watched_files import text_of
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

_RANDOM_BYTES: Final = 32


def own_token(path: Path, key: str) -> str:
    """
    Return the token in the file that *key* names, creating the file if absent. Blocks.

    Raises `ConfigError` if the file cannot be created, or other users may read it.
    """
    try:
        if not path.exists():
            _make(path)
    except OSError as error:
        msg = f"{key} {path} cannot be written: {error.strerror or error}"
        raise ConfigError(msg) from error
    require_private(path, key)
    token = text_of(path, key).strip()
    if not is_token(token):
        msg = f"{key} {path} must hold one token and nothing else: remove it, and one is made"
        raise ConfigError(msg)
    return token


def _make(path: Path) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        beside.unlink()
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{secrets.token_hex(_RANDOM_BYTES)}\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()
