"""
Segments as Kafka's storage plugin encrypts them, and key rings.

    keys = KeyFiles(folder)                     # two keys, and a ring that names both
    seal_segment(store, segment, prefix, keys)  # encrypts the segment's objects in a store
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from spark_tiering.layout.chunk_index import FixedChunks, VariableChunks
from spark_tiering.layout.encryption import SEALED_BYTES
from spark_tiering.layout.manifest import Manifest, SegmentDescription, SegmentEncryption
from spark_tiering.layout.manifest_document import format_manifest, parse_manifest
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.layout.segment_indexes import INDEX_PARTS, lay_out_indexes
from spark_tiering.segment_reading.key_files import KeyRingSettings
from spark_tiering.stores.content import BytesContent

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.stores.protocol import ObjectStore

IDS = ("key-2025", "key-2026")
DATA_KEY = bytes(range(200, 232))
_HASH = 64


@cache
def private_key(key_id: str) -> rsa.RSAPrivateKey:
    assert key_id
    return rsa.generate_private_key(65537, 2048)


def pem(key_id: str) -> bytes:
    return private_key(key_id).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


class KeyFiles:
    def __init__(self, folder: Path, ids: tuple[str, ...] = IDS) -> None:
        self.folder = folder
        self.ring = folder / "ring.json"
        folder.mkdir(exist_ok=True)
        self.write(dict.fromkeys(ids, ""))

    def write(self, keys: dict[str, str]) -> None:
        named = {}
        for key_id, other in keys.items():
            path = self.folder / f"{key_id}.pem"
            path.write_bytes(pem(other or key_id))
            path.chmod(0o600)
            named[key_id] = path.name
        content = {"format": "rlmm-key-ring", "version": 1, "keys": named}
        self.ring.write_text(json.dumps(content))
        self.ring.chmod(0o600)

    @property
    def settings(self) -> KeyRingSettings:
        return KeyRingSettings(str(self.ring))


def seal_key(data_key: bytes, key_id: str) -> bytes:
    """Seal a data key, padded by OAEP with SHA3-512 in both places."""
    numbers = private_key(key_id).public_key().public_numbers()
    size = -(-numbers.n.bit_length() // 8)
    empty = hashlib.sha3_512(b"").digest()
    block = empty + bytes(size - 2 * _HASH - 2 - len(data_key)) + b"\1" + data_key
    seed = secrets.token_bytes(_HASH)
    masked = _xor(block, _mask(seed, len(block)))
    padded = b"\0" + _xor(seed, _mask(masked, _HASH)) + masked
    return pow(int.from_bytes(padded), numbers.e, numbers.n).to_bytes(size)


def _mask(seed: bytes, size: int) -> bytes:
    made = b""
    for number in range(size // _HASH + 1):
        made += hashlib.sha3_512(seed + number.to_bytes(4)).digest()
    return made[:size]


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def seal(content: bytes, aad: bytes, data_key: bytes = DATA_KEY) -> bytes:
    vector = secrets.token_bytes(12)
    return vector + AESGCM(data_key).encrypt(vector, content, aad)


def seal_objects(
    manifest: Manifest, log: bytes, indexes: bytes, key_id: str = IDS[0]
) -> dict[ObjectKind, bytes]:
    aad = secrets.token_bytes(32)
    starts = [manifest.chunks.chunk(n).stored_start for n in range(manifest.chunks.count)]
    sealed = [
        seal(log[start:end], aad)
        for start, end in pairwise([*starts, manifest.chunks.stored_bytes])
    ]
    chunks = manifest.chunks
    if isinstance(chunks, FixedChunks):
        chunks = FixedChunks(
            chunks.original_chunk_bytes,
            chunks.original_bytes,
            chunks.stored_chunk_bytes + SEALED_BYTES,
            chunks.last_stored_chunk_bytes + SEALED_BYTES,
        )
    else:
        sizes = [size + SEALED_BYTES for size in chunks.stored_sizes]
        chunks = VariableChunks(chunks.original_chunk_bytes, chunks.original_bytes, sizes)
    parts = {}
    for part in INDEX_PARTS:
        place = manifest.indexes.place(part)
        if place is not None:
            content = indexes[place.position : place.next_position]
            # Of an index without bytes nothing is stored at all.
            parts[part] = seal(content, aad) if content else b""
    described = manifest.described
    if isinstance(described, SegmentDescription):
        described = replace(described, note=None)
    sealed_manifest = Manifest(
        chunks,
        lay_out_indexes({part: len(content) for part, content in parts.items()}),
        manifest.is_compressed,
        described,
        SegmentEncryption(key_id, seal_key(DATA_KEY, key_id), aad),
    )
    return {
        ObjectKind.LOG: b"".join(sealed),
        ObjectKind.INDEXES: b"".join(parts.values()),
        ObjectKind.MANIFEST: format_manifest(sealed_manifest),
    }


def seal_segment(
    store: ObjectStore, segment: SegmentMetadata, prefix: str = "", key_id: str = IDS[0]
) -> None:
    keys = object_keys(segment.id, segment.start_offset, prefix)
    there = {}
    for kind, key in keys.items():
        got = store.get(key, 0, 1 << 31)
        assert isinstance(got, bytes)
        there[kind] = got
    manifest = parse_manifest(there[ObjectKind.MANIFEST])
    assert isinstance(manifest, Manifest)
    sealed = seal_objects(manifest, there[ObjectKind.LOG], there[ObjectKind.INDEXES], key_id)
    for kind, content in sealed.items():
        store.delete(keys[kind])
        store.put(keys[kind], BytesContent(content))
