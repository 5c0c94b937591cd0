"""
The private keys of segments, by the ids that their manifests name. Pure: `key_files` reads files.

    {"format": "rlmm-key-ring", "version": 1, "keys": {"key-2026": "key-2026.pem"}}

A rotated key stays in the ring for as long as there are segments of its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from rlmm.errors import ConfigError
from spark_tiering.layout.encryption import SegmentCipher
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.strict_json import JsonFault, read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_tiering.layout.encryption import PrivateKey
    from spark_tiering.layout.manifest import Manifest, SegmentEncryption

FORMAT: Final = "rlmm-key-ring"
VERSION: Final = 1
RING_BYTES_MAX: Final = 1024 * 1024
KEY_BYTES_MAX: Final = 64 * 1024


class _Ring(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    version: int | str
    keys: dict[str, str]


def parse_key_ring(content: bytes, where: str) -> dict[str, str]:
    """Return the files of a ring by the ids of their keys. Raises `ConfigError`."""
    try:
        ring = read_json(content, _Ring, bytes_max=RING_BYTES_MAX)
    except JsonFault as fault:
        msg = f"{where} is no key ring: {fault.kind}: {fault.detail}"
        raise ConfigError(msg) from fault
    if ring.format != FORMAT or ring.version not in (VERSION, str(VERSION)):
        msg = f"{where} is no key ring: {ring.format[:80]!r}, expected {FORMAT!r} {VERSION}"
        raise ConfigError(msg)
    for key_id in ring.keys:
        if not key_id.strip() or ":" in key_id:
            msg = f"{where} is no key ring: keys: {key_id[:80]!r} is no id of a key"
            raise ConfigError(msg)
    return ring.keys


class KeyRing:
    """Holds private keys in memory; printed, it shows their ids alone."""

    def __init__(self, keys: Mapping[str, PrivateKey]) -> None:
        self._keys = dict(keys)

    def __repr__(self) -> str:
        return f"KeyRing({sorted(self._keys)})"

    def __reduce__(self) -> NoReturn:
        msg = "private keys are not sent to other processes: send the place of the key ring"
        raise TypeError(msg)

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(self._keys)

    def cipher(self, encryption: SegmentEncryption) -> SegmentCipher | LayoutFinding:
        shown = repr(encryption.key_id[:80])
        key = self._keys.get(encryption.key_id)
        if key is None:
            known = ", ".join(sorted(self._keys))[:200] or "no key"
            detail = f"sealed by the key {shown}, the key ring has {known}"
            return LayoutFinding(LayoutFault.ENCRYPTED, detail)
        data_key = key.open(encryption.sealed_key)
        if data_key is None:
            detail = f"the key {shown} of the key ring does not open the segment's data key"
            return LayoutFinding(LayoutFault.KEY_WRONG, detail)
        return SegmentCipher(data_key, encryption.aad)


def cipher_of(manifest: Manifest, ring: KeyRing | None) -> SegmentCipher | LayoutFinding | None:
    """Return the cipher of a segment's parts; `None` where it is not encrypted."""
    if manifest.encryption is None:
        return None
    if ring is None:
        shown = repr(manifest.encryption.key_id[:80])
        detail = f"sealed by the key {shown}, and no key ring was named"
        return LayoutFinding(LayoutFault.ENCRYPTED, detail)
    return ring.cipher(manifest.encryption)
