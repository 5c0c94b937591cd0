"""
Key stores of Java clients, JKS or PKCS12; only PKCS12 imports `cryptography`, which few need.

In a JKS integers are big-endian, texts have a length of two bytes. The SHA-1 sums that end it and
hide its keys do not protect a key from a reader of the file, so the file must be protected.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


MAGIC = b"\xfe\xed\xfe\xed"
MAGIC_OF_JCEKS = b"\xce\xce\xce\xce"

_KEY, _TRUSTED = 1, 2
_VERSIONS = (1, 2)
_DIGEST_BYTES = 20
_WHITENER = b"Mighty Aphrodite"
_PROTECTOR = bytes.fromhex("2b060104012a02110101")
"""The object identifier of the way in which keys are hidden."""
_SEQUENCE, _OBJECT_ID, _OCTETS = 0x30, 0x06, 0x04


class StoreUnreadable(ValueError):
    """A store that cannot be read; the message contains no secret."""


@dataclass(frozen=True, slots=True)
class StoreContent:
    """The certificates and the key of a store, as DER."""

    trusted: tuple[bytes, ...]
    """Trusted certificates; for a key of ours, also its own certificate."""
    key: bytes | None = None
    """The first private key, as PKCS#8."""
    chain: tuple[bytes, ...] = ()
    """Its certificates, its own first."""


def read_jks(content: bytes, password: str | None, key_password: str | None) -> StoreContent:
    """Read a store, verified by *password*, and its first key if *key_password* is given."""
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if password is not None and not hmac.compare_digest(_sum_of(password, body), digest):
        raise StoreUnreadable("the password does not match, or the file was changed")
    reader = _Reader(body)
    reader.take(len(MAGIC))
    version, count = reader.int32(), reader.int32()
    if version not in _VERSIONS:
        raise StoreUnreadable(f"a JKS store of version {version}, versions 1 and 2 are known")
    trusted: list[bytes] = []
    keys: list[tuple[bytes, tuple[bytes, ...]]] = []
    for _ in range(count):
        kind = reader.int32()
        reader.text()
        reader.take(8)
        if kind == _TRUSTED:
            trusted.append(reader.certificate(version))
        elif kind == _KEY:
            hidden = reader.block()
            chain = tuple(reader.certificate(version) for _ in range(reader.int32()))
            keys.append((hidden, chain))
            trusted += chain[:1]
        else:
            raise StoreUnreadable(f"an entry of kind {kind}, at byte {reader.at}")
    if not keys or key_password is None:
        return StoreContent(tuple(trusted))
    hidden, chain = keys[0]
    return StoreContent(tuple(trusted), _shown(hidden, key_password), chain)


def _sum_of(password: str, body: bytes) -> bytes:
    return _sha1(password.encode("utf-16-be"), _WHITENER, body)


def _sha1(*parts: bytes) -> bytes:
    return hashlib.sha1(b"".join(parts), usedforsecurity=False).digest()


def _shown(hidden: bytes, password: str) -> bytes:
    """Return the key that is hidden in Java's way."""
    secret = password.encode("utf-16-be")
    data = _hidden_bytes(hidden)
    salt, covered, check = data[:20], data[20:-20], data[-20:]
    stream, last = bytearray(), salt
    while len(stream) < len(covered):
        last = _sha1(secret, last)
        stream += last
    key = bytes(one ^ other for one, other in zip(covered, stream, strict=False))
    if not hmac.compare_digest(_sha1(secret, key), check):
        raise StoreUnreadable("its key is not opened by the password")
    return key


def _hidden_bytes(info: bytes) -> bytes:
    outer = _Der(info).element(_SEQUENCE)
    inner = _Der(outer)
    way = _Der(inner.element(_SEQUENCE)).element(_OBJECT_ID)
    if way != _PROTECTOR:
        raise StoreUnreadable("its key is hidden in a way that is not Java's")
    data = inner.element(_OCTETS)
    if len(data) < 2 * _DIGEST_BYTES:
        raise StoreUnreadable("its key is cut off")
    return data


class _Reader:
    """Reads one part after the other."""

    def __init__(self, content: bytes) -> None:
        self.at = 0
        self._content = content

    def take(self, size: int) -> bytes:
        found = self._content[self.at : self.at + size]
        if size < 0 or len(found) < size:
            msg = f"{size} bytes are wanted at byte {self.at} of {len(self._content)}"
            raise StoreUnreadable(msg)
        self.at += size
        return found

    def int32(self) -> int:
        return int.from_bytes(self.take(4), signed=True)

    def text(self) -> bytes:
        return self.take(int.from_bytes(self.take(2)))

    def block(self) -> bytes:
        return self.take(self.int32())

    def certificate(self, version: int) -> bytes:
        if version > 1:
            self.text()
        return self.block()


class _Der:
    """Reads the elements of a DER structure, as far as an envelope of a key has any."""

    def __init__(self, content: bytes) -> None:
        self._reader = _Reader(content)

    def element(self, tag: int) -> bytes:
        found = self._reader.take(1)[0]
        if found != tag:
            msg = f"an element of kind {found:#x} where one of {tag:#x} has to stand"
            raise StoreUnreadable(msg)
        size = self._reader.take(1)[0]
        if size & 0x80:
            size = int.from_bytes(self._reader.take(size & 0x7F))
        return self._reader.take(size)


_DER = b"\x30"
_LINE = 64


def is_store(content: bytes) -> bool:
    return content.startswith((MAGIC, MAGIC_OF_JCEKS, _DER))


def read_store(
    content: bytes, password: str | None, *, wants_key: bool, key_password: str | None = None
) -> StoreContent:
    """Read a store by *password*, its key by *key_password* or *password*; `StoreUnreadable`."""
    if content.startswith(MAGIC_OF_JCEKS):
        raise StoreUnreadable("it is a JCEKS store, which is not read")
    if content.startswith(MAGIC):
        opens_key = key_password or password or ""
        return read_jks(content, password, opens_key if wants_key else None)
    return _read_pkcs12(content, password)


def _read_pkcs12(content: bytes, password: str | None) -> StoreContent:
    try:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
        from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415
    except ImportError as error:
        msg = "a PKCS12 store is read by the package cryptography, which is not installed"
        raise StoreUnreadable(msg) from error
    try:
        found = pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except Exception as error:
        # Of a wrong password and of damage the library says the same, in several classes.
        msg = f"the password does not match, or it is not a PKCS12 store ({type(error).__name__})"
        raise StoreUnreadable(msg) from error
    der, nothing = serialization.Encoding.DER, serialization.NoEncryption()
    others = tuple(one.certificate.public_bytes(der) for one in found.additional_certs)
    own = () if found.cert is None else (found.cert.certificate.public_bytes(der),)
    key = None
    if found.key is not None:
        key = found.key.private_bytes(der, serialization.PrivateFormat.PKCS8, nothing)
    return StoreContent((*others, *own), key, (*own, *others) if key is not None else ())


def pem_of(content: StoreContent) -> bytes:
    assert content.key is not None, "there is a key"
    return b"".join(_pem("PRIVATE KEY", [content.key])) + b"".join(
        _pem("CERTIFICATE", content.chain)
    )


def _pem(kind: str, parts: Iterable[bytes]) -> Iterable[bytes]:
    for part in parts:
        text = base64.b64encode(part).decode("ascii")
        lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
        yield "\n".join((f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", "")).encode()
