"""
The opening of a store from its settings, once a process, or a thread of it.

    s3://bucket      the bucket, prefixes belong to keys
    /path, file:///path   the folder
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from rlmm.errors import ConfigError, EngineUnfit
from spark_tiering.stores.local import LocalStore
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.s3_settings import S3Settings

if TYPE_CHECKING:
    from spark_tiering.stores.protocol import ObjectStore

StoreSettings = LocalSettings | S3Settings

_LIBRARIES = {"awscrt": "tiering", "boto3": "s3", "zstandard": "tiering"}
"""Library -> the extra of rlmm that installs it."""
_open: dict[tuple[int, int, StoreSettings], ObjectStore] = {}


def parse_store(address: str, template: S3Settings | None = None) -> tuple[StoreSettings, str]:
    """Return store and key prefix of *address*, or raise `ConfigError`."""
    parts = urlsplit(address)
    if parts.query or parts.fragment or parts.username or parts.password:
        msg = "the address of a store has neither user, password, query nor fragment"
        raise ConfigError(msg)
    if parts.scheme == "s3":
        prefix = parts.path.removeprefix("/")
        if template is None:
            return S3Settings(parts.netloc), prefix
        return replace(template, bucket=parts.netloc), prefix
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path:
        return LocalSettings(Path(unquote(parts.path))), ""
    if not parts.scheme and address:
        return LocalSettings(Path(address)), ""
    msg = f"{address!r} is no store: s3://bucket/prefix or the path of a folder is one"
    raise ConfigError(msg)


def require_libraries(settings: StoreSettings) -> None:
    """Import the libraries that the store and its objects need; `EngineUnfit` if one is missing."""
    wanted = dict(_LIBRARIES)
    if isinstance(settings, LocalSettings):
        del wanted["boto3"]
    for name in list(wanted):
        with suppress(ModuleNotFoundError):
            import_module(name)
            del wanted[name]
    if wanted:
        extras = ",".join(sorted(set(wanted.values())))
        verb = "is" if len(wanted) == 1 else "are"
        msg = f"a store of objects needs {', '.join(wanted)}, which {verb} not installed: "
        raise EngineUnfit(f"{msg}pip install 'rlmm[{extras}]'")


def open_store(settings: StoreSettings) -> ObjectStore:
    """Raise `EngineUnfit` where a library of the store is not installed."""
    require_libraries(settings)
    if isinstance(settings, LocalSettings):
        return LocalStore(settings)
    # Large, and not needed for a folder.
    from spark_tiering.stores.s3 import S3Store  # noqa: PLC0415

    return S3Store(settings)


def process_store(settings: StoreSettings) -> ObjectStore:
    """Return this thread's store for *settings*, kept; a forked process opens its own."""
    place = (os.getpid(), threading.get_ident(), settings)
    if place not in _open:
        _open[place] = open_store(settings)
    return _open[place]
