"""Key stores as Java writes them: JKS by hand, PKCS12 by the library that reads it, too."""

from __future__ import annotations

import hashlib
import os
import struct
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

if TYPE_CHECKING:
    import trustme

PROTECTOR = bytes.fromhex("300e060a2b060104012a021101010500")


def text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode()


def block(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


def der(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 0x80 else b"\x82" + struct.pack(">H", size)
    return bytes([tag]) + length + content


def hidden(key: bytes, password: str) -> bytes:
    secret = password.encode("utf-16-be")
    salt = last = os.urandom(20)
    stream = b""
    while len(stream) < len(key):
        last = hashlib.sha1(secret + last).digest()
        stream += last
    covered = bytes(one ^ other for one, other in zip(key, stream, strict=False))
    check = hashlib.sha1(secret + key).digest()
    return der(0x30, PROTECTOR + der(0x04, salt + covered + check))


def trusted_entry(alias: str, certificate: bytes) -> bytes:
    return struct.pack(">I", 2) + text(alias) + bytes(8) + text("X.509") + block(certificate)


def key_entry(alias: str, envelope: bytes, chain: list[bytes]) -> bytes:
    parts = b"".join(text("X.509") + block(one) for one in chain)
    head = struct.pack(">I", 1) + text(alias) + bytes(8) + block(envelope)
    return head + struct.pack(">I", len(chain)) + parts


def jks(*entries: bytes, password: str, version: int = 2) -> bytes:
    body = b"\xfe\xed\xfe\xed" + struct.pack(">II", version, len(entries)) + b"".join(entries)
    secret = password.encode("utf-16-be")
    return body + hashlib.sha1(secret + b"Mighty Aphrodite" + body).digest()


def der_of(pem: bytes) -> bytes:
    return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)


def key_der(pem: bytes) -> bytes:
    key = load_pem_private_key(pem, password=None)
    return key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


def p12(
    authority: trustme.CA, issued: trustme.LeafCert | None = None, password: str | None = None
) -> bytes:
    how: KeySerializationEncryption = NoEncryption()
    if password is not None:
        how = BestAvailableEncryption(password.encode())
    ca = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
    if issued is None:
        return pkcs12.serialize_key_and_certificates(b"ca", None, None, [ca], how)
    key = load_pem_private_key(issued.private_key_pem.bytes(), password=None)
    own = x509.load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())
    return pkcs12.serialize_key_and_certificates(b"own", key, own, [ca], how)  # type: ignore[arg-type]
