"""Certificates: until when one is valid, and the names in it. Pure. TLS judges the trust in it."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

_PEM: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----", re.ASCII
)
_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
_FORMS: Final = {_UTC_TIME: "%y%m%d%H%M%SZ", _GENERALIZED_TIME: "%Y%m%d%H%M%SZ"}
_NAME_CHARS_MAX: Final = 256
_KINDS: Final = ("URI", "DNS")


@dataclass(frozen=True, slots=True)
class Validity:
    """The period in which a certificate is valid, in seconds since 1970."""

    not_before_s: int
    not_after_s: int


def validity_of(pem: str) -> Validity:
    """Return the validity of a PEM file's first certificate; `ConfigError` without one."""
    found = _PEM.search(pem)
    if found is None:
        raise ConfigError("there is no certificate in it")
    try:
        return _validity(ssl.PEM_cert_to_DER_cert(found.group()))
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise ConfigError("its first certificate cannot be read") from error


def names_of(certificate: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names in a result of `getpeercert`: URIs, DNS names, then common names."""
    alternatives = certificate.get("subjectAltName", ())
    subject = certificate.get("subject", ())
    assert isinstance(alternatives, tuple), alternatives
    assert isinstance(subject, tuple), subject
    found = [str(value) for wanted in _KINDS for kind, value in alternatives if kind == wanted] + [
        str(value) for part in subject for kind, value in part if kind == "commonName"
    ]
    return tuple(dict.fromkeys(name for name in found if 0 < len(name) <= _NAME_CHARS_MAX))


def _validity(der: bytes) -> Validity:
    _, certificate, _ = _element(der)
    tag, rest, _ = _element(certificate)
    _require(tag == _SEQUENCE)
    if rest[0] == _VERSION:
        rest = _element(rest)[2]
    for _ in ("serial number", "algorithm", "issuer"):
        rest = _element(rest)[2]
    tag, validity, _ = _element(rest)
    _require(tag == _SEQUENCE)
    before, not_before, after = _element(validity)
    kind, not_after, _ = _element(after)
    return Validity(_seconds(before, not_before), _seconds(kind, not_after))


def _element(der: bytes) -> tuple[int, bytes, bytes]:
    """Return tag and content of the first DER element, and the bytes behind it."""
    tag, length, start = der[0], der[1], 2
    if length & 0x80:
        count = length & 0x7F
        _require(0 < count <= 4)
        length = int.from_bytes(der[2 : 2 + count])
        start += count
    _require(len(der) >= start + length)
    return tag, der[start : start + length], der[start + length :]


def _seconds(kind: int, text: bytes) -> int:
    _require(kind in _FORMS)
    moment = datetime.strptime(text.decode("ascii"), _FORMS[kind]).replace(tzinfo=UTC)
    if kind == _UTC_TIME and moment.year >= 2050:
        moment = moment.replace(year=moment.year - 100)
    return int(moment.timestamp())


def _require(is_right: bool) -> None:
    if not is_right:
        raise ValueError
