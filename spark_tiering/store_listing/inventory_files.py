"""Files of an inventory, fetched from a bucket or a folder, and checked. I/O."""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError
from spark_tiering.store_listing.inventory import (
    CHECKSUM,
    MANIFEST,
    MANIFEST_BYTES_MAX,
    check_sum,
    parse_inventory,
)
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.object_reading import read_whole
from spark_tiering.stores.opening import open_store, parse_store
from spark_tiering.stores.results import ObjectAbsent, ObjectArchived
from spark_tiering.stores.s3_settings import S3Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.store_listing.inventory import Inventory, InventoryFile
    from spark_tiering.stores.opening import StoreSettings
    from spark_tiering.stores.protocol import ObjectStore


@dataclass(frozen=True, slots=True)
class InventoryPlace:
    store: StoreSettings
    key: str

    def __str__(self) -> str:
        where = self.store
        return f"{where.address if isinstance(where, S3Settings) else where.folder}/{self.key}"


def place_of(address: str, template: StoreSettings | None = None) -> InventoryPlace:
    """
    Return the place of a manifest, or of the folder of one; *template* has a bucket's settings.
    """
    known = template if isinstance(template, S3Settings) else None
    store, key = parse_store(address, known)
    if isinstance(store, LocalSettings):
        folder = store.folder
        if folder.is_file():
            folder, key = folder.parent, folder.name
        elif not folder.is_dir():
            raise ConfigError(f"there is no inventory at {folder}: no such folder")
        store = replace(store, folder=folder.absolute(), is_made=False)
    if not key or key.endswith("/"):
        key += MANIFEST
    return InventoryPlace(store, key)


def read_inventory(place: InventoryPlace) -> Inventory:
    """Read the manifest, and check the sum beside it. Raise `ConfigError`."""
    with open_store(place.store) as store:
        content = _small(store, place.key)
        if content is None:
            raise ConfigError(f"there is no inventory at {place}")
        folder, _, _ = place.key.rpartition("/")
        told = _small(store, f"{folder}/{CHECKSUM}" if folder else CHECKSUM)
    if told is not None:
        check_sum(str(place), content, told)
    return parse_inventory(str(place), content)


def _small(store: ObjectStore, key: str) -> bytes | None:
    got = store.get(key, 0, MANIFEST_BYTES_MAX - 1)
    if isinstance(got, ObjectArchived):
        raise ConfigError(str(got))
    if isinstance(got, ObjectAbsent):
        return None
    return got if isinstance(got, bytes) else b""


@contextmanager
def fetched(store: ObjectStore, place: InventoryPlace, file: InventoryFile) -> Iterator[Path]:
    """Yield the file on this disk. Raise `ConfigError` where it is not the manifest's."""
    key = _find(store, place, file)
    digest = hashlib.md5(usedforsecurity=False)
    with tempfile.NamedTemporaryFile(prefix="rlmm-inventory-") as kept:
        try:
            for piece in read_whole(store, key, file.size_bytes):
                digest.update(piece)
                kept.write(piece)
        except OSError as error:
            raise ConfigError(f"inventory file {key}: {error}") from error
        kept.flush()
        if digest.hexdigest() != file.md5:
            found = digest.hexdigest()
            msg = f"inventory file {key}: its MD5 is {found}, and the manifest says {file.md5}"
            raise ConfigError(msg)
        yield Path(kept.name)


def _find(store: ObjectStore, place: InventoryPlace, file: InventoryFile) -> str:
    name = file.key.rpartition("/")[2]
    folder = place.key.rpartition("/")[0]
    above = folder.rpartition("/")[0]
    places = (file.key, *(f"{one}/{name}".lstrip("/") for one in (
        f"{above}/data", f"{folder}/data", folder,
    )))  # fmt: skip
    for key in dict.fromkeys(places):
        facts = store.head(key, is_sum_wanted=False)
        if isinstance(facts, ObjectAbsent):
            continue
        if facts.size_bytes != file.size_bytes:
            msg = f"inventory file {key}: {facts.size_bytes} bytes are there, and the manifest "
            msg += f"says {file.size_bytes}"
            raise ConfigError(msg)
        return key
    raise ConfigError(f"inventory file {file.key}: there is no such object at {place}")
