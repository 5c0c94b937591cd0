"""
The encryption of segments by the plugin: their data key opened, and each of their parts. Pure.

A segment's AES-256-GCM key lies in the manifest, sealed with RSA by OAEP with SHA3-512 as hash and
mask (MGF1), as Bouncy Castle does. Chunks are compressed first; each chunk and index is stored as

    initialisation vector (12 bytes), ciphertext, tag (16 bytes)

whose tag also covers the manifest's aad. The cryptography library refuses OAEP with SHA-3, so this
module removes the padding, after a blinded exponentiation, with one message for every fault. No
message shows a key, and no object that holds one is pickled.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING, Final, NoReturn

from rlmm.errors import ConfigError
from spark_tiering.layout.findings import LayoutFault, LayoutFinding

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateNumbers
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VECTOR_BYTES: Final = 12
TAG_BYTES: Final = 16
SEALED_BYTES: Final = VECTOR_BYTES + TAG_BYTES
"""What sealing adds to each chunk and to each index."""
DATA_KEY_BYTES: Final = 32

_HASH_BYTES: Final = 64
_MODULUS_BITS_MAX: Final = 16_384
"""Longer keys are not in use, and take minutes for each segment."""


class PrivateKey:
    def __init__(self, pem: bytes, where: str) -> None:
        """*where* names the file. Raises `ConfigError`, with nothing of its content."""
        # Large, and not needed where nothing is encrypted.
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey  # noqa: PLC0415
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
            load_pem_private_key,
        )

        try:
            found = load_pem_private_key(pem, password=None)
        except TypeError as error:
            msg = f"{where}: the key is protected by a passphrase, and none can be given"
            raise ConfigError(msg) from error
        except (ValueError, UnsupportedAlgorithm):
            msg = f"{where}: no private key in PEM"
            raise ConfigError(msg) from None
        if not isinstance(found, RSAPrivateKey):
            msg = f"{where}: a private key, and none of RSA"
            raise ConfigError(msg)
        least = 8 * (2 * _HASH_BYTES + 2 + DATA_KEY_BYTES)
        if not least <= found.key_size <= _MODULUS_BITS_MAX:
            msg = f"{where}: a key of {found.key_size} bits, {least} to {_MODULUS_BITS_MAX} are"
            raise ConfigError(f"{msg} possible")
        self._numbers: RSAPrivateNumbers = found.private_numbers()
        self._size_bytes = -(-found.key_size // 8)

    def __repr__(self) -> str:
        return "PrivateKey(...)"

    def __reduce__(self) -> NoReturn:
        msg = "private keys are not sent to other processes: send the place of the key ring"
        raise TypeError(msg)

    def open(self, sealed_key: bytes) -> bytes | None:
        """Return the data key; `None` where it was not sealed for this one."""
        numbers = self._numbers
        modulus = numbers.public_numbers.n
        sealed = int.from_bytes(sealed_key)
        if len(sealed_key) != self._size_bytes or sealed >= modulus:
            return None
        # Blinded, as the time that this takes depends on its operands.
        mask, unmask = _blinding(modulus)
        masked = sealed * pow(mask, numbers.public_numbers.e, modulus) % modulus
        by_p = pow(masked % numbers.p, numbers.dmp1, numbers.p)
        by_q = pow(masked % numbers.q, numbers.dmq1, numbers.q)
        opened = by_q + numbers.q * ((by_p - by_q) * numbers.iqmp % numbers.p)
        padded = (opened * unmask % modulus).to_bytes(self._size_bytes)
        return _unpadded(padded)


def _blinding(modulus: int) -> tuple[int, int]:
    while True:
        mask = secrets.randbelow(modulus - 2) + 2
        try:
            return mask, pow(mask, -1, modulus)
        except ValueError:  # it has a factor of the modulus, which never happens
            continue


def _unpadded(padded: bytes) -> bytes | None:
    seed_mask = _mgf1(padded[1 + _HASH_BYTES :], _HASH_BYTES)
    seed = _xor(padded[1 : 1 + _HASH_BYTES], seed_mask)
    block_mask = _mgf1(seed, len(padded) - 1 - _HASH_BYTES)
    block = _xor(padded[1 + _HASH_BYTES :], block_mask)
    # A data key has one length, so where it must begin is known.
    filling = bytes(len(block) - _HASH_BYTES - 1 - DATA_KEY_BYTES) + b"\x01"
    expected = b"\x00" + hashlib.sha3_512(b"").digest() + filling
    is_right = hmac.compare_digest(padded[:1] + block[:-DATA_KEY_BYTES], expected)
    return block[-DATA_KEY_BYTES:] if is_right else None


def _mgf1(seed: bytes, size: int) -> bytes:
    rounds = range(-(-size // _HASH_BYTES))
    made = b"".join(hashlib.sha3_512(seed + number.to_bytes(4)).digest() for number in rounds)
    return made[:size]


def _xor(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one) ^ int.from_bytes(other)).to_bytes(len(one))


class SegmentCipher:
    def __init__(self, data_key: bytes, aad: bytes) -> None:
        # Large, and not needed where nothing is encrypted.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        self._cipher: AESGCM = AESGCM(data_key)
        self._aad = aad

    def __repr__(self) -> str:
        return "SegmentCipher(...)"

    def __reduce__(self) -> NoReturn:
        msg = "data keys are not sent to other processes: send the place of the key ring"
        raise TypeError(msg)

    def open(self, sealed: bytes | memoryview, where: str) -> bytes | LayoutFinding:
        """Decrypt one sealed part; *where* names it in a finding."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415

        if len(sealed) < SEALED_BYTES:
            detail = f"{where}: {len(sealed)} bytes, a sealed part has {SEALED_BYTES} at least"
            return LayoutFinding(LayoutFault.LENGTH, detail)
        part = memoryview(sealed)
        try:
            return self._cipher.decrypt(part[:VECTOR_BYTES], part[VECTOR_BYTES:], self._aad)
        except InvalidTag:
            detail = f"{where}: its tag is not that of these bytes and of the manifest's aad"
            return LayoutFinding(LayoutFault.DAMAGED, detail)
