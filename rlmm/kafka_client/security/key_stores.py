"""Key stores of Java clients, JKS or PKCS12; only PKCS12 imports `cryptography`, which few need."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from rlmm.kafka_client.security.java_key_store import (
    MAGIC,
    MAGIC_OF_JCEKS,
    StoreContent,
    StoreUnreadable,
    read_jks,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_DER = b"\x30"
"""How PKCS12 begins."""
_LINE = 64


def is_store(content: bytes) -> bool:
    return content.startswith((MAGIC, MAGIC_OF_JCEKS, _DER))


def read_store(
    content: bytes, password: str | None, *, wants_key: bool, key_password: str | None = None
) -> StoreContent:
    """
    Read a store by *password*, its key by *key_password* or else *password*, if wanted.

    Raises `StoreUnreadable`.
    """
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
