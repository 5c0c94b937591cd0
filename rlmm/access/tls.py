"""
TLS of TCP listeners: contexts made from PEM files, and replaced when the files change.

A listener's context hands each new connection to the newest context, which shares no sessions with
earlier ones: a client whose certificate lost its trust cannot resume. Open connections stay.
"""

from __future__ import annotations

import logging
import re
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from rlmm.access.settings import ClientCertificates, TlsVersion
from rlmm.access.watched_files import FromFiles, text_of
from rlmm.base.private_files import require_private
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlmm.access.settings import TlsSettings


_log = logging.getLogger(__name__)

WARNING_S: Final = 30 * 86_400
_AGAIN_S: Final = 86_400
_VERSIONS: Final = {
    TlsVersion.TLS_1_2: ssl.TLSVersion.TLSv1_2,
    TlsVersion.TLS_1_3: ssl.TLSVersion.TLSv1_3,
}
_VERIFY: Final = {
    ClientCertificates.NONE: ssl.CERT_NONE,
    ClientCertificates.WANTED: ssl.CERT_OPTIONAL,
    ClientCertificates.REQUIRED: ssl.CERT_REQUIRED,
}


@dataclass(frozen=True, slots=True)
class TlsContext:
    context: ssl.SSLContext
    validity: Validity


class NewestContext(ssl.SSLContext):
    """The context of a listener; the newest loaded context makes each connection."""

    newest: Callable[[], ssl.SSLContext]

    def wrap_bio(self, *args: Any, **named: Any) -> ssl.SSLObject:
        return self.newest().wrap_bio(*args, **named)

    def wrap_socket(self, *args: Any, **named: Any) -> ssl.SSLSocket:
        return self.newest().wrap_socket(*args, **named)


class ServerTls:
    def __init__(self, settings: TlsSettings, wall_s: Callable[[], float]) -> None:
        """Read the files; raises `ConfigError`. *wall_s* returns the seconds since 1970."""
        self._settings = settings
        self._wall_s = wall_s
        self._told_s: float | None = None
        paths = (
            settings.certificate_file, settings.key_file, settings.key_password_file,
            settings.client_ca_file,
        )  # fmt: skip
        self._files = FromFiles(
            "the certificate", [path for path in paths if path is not None], self._made
        )
        self.context = NewestContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.newest = lambda: self._files.value.context
        self._tell_end()

    @property
    def validity(self) -> Validity:
        return self._files.value.validity

    @property
    def reloads(self) -> int:
        return self._files.reloads

    @property
    def failures(self) -> int:
        return self._files.failures

    @property
    def is_unusable(self) -> bool:
        return self._files.is_unusable

    def look(self) -> None:
        """Load files that have changed, and warn when the certificate is about to expire."""
        if self._files.look():
            self._told_s = None
        self._tell_end()

    def _tell_end(self) -> None:
        now_s = self._wall_s()
        if self._told_s is not None and now_s - self._told_s < _AGAIN_S:
            return
        validity, path = self.validity, self._settings.certificate_file
        left_s = validity.not_after_s - now_s
        if left_s <= 0:
            _log.error("the certificate %s has ended: no client will trust it", path)
        elif validity.not_before_s > now_s:
            _log.error("the certificate %s is not valid yet: no client will trust it", path)
        elif left_s <= WARNING_S:
            _log.warning("the certificate %s ends in %d days", path, left_s // 86_400)
        else:
            return
        self._told_s = now_s

    def _made(self, in_use: TlsContext | None) -> TlsContext:
        """Load the files. An expired certificate never replaces a valid one."""
        settings = self._settings
        path = settings.certificate_file
        assert path is not None
        try:
            validity = validity_of(text_of(path, "tls.certificate_file"))
        except ConfigError as error:
            msg = f"tls.certificate_file {path}: {error}"
            raise ConfigError(msg) from error
        now_s = self._wall_s()
        if in_use is not None and validity.not_after_s <= now_s < in_use.validity.not_after_s:
            msg = f"tls.certificate_file {path} has ended, while the one in use has not"
            raise ConfigError(msg)
        return TlsContext(_context(settings), validity)


def _context(settings: TlsSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[settings.version_min]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.num_tickets = 0  # connections last long: to take one up again is not worth its risks
    _load_chain(context, settings)
    context.verify_mode = _VERIFY[settings.client_certificates]
    path = settings.client_ca_file
    if path is not None:
        try:
            context.load_verify_locations(cafile=path)
        except OSError as error:
            msg = f"tls.client_ca_file {path} cannot be used: {_reason(error)}"
            raise ConfigError(msg) from error
    return context


def _load_chain(context: ssl.SSLContext, settings: TlsSettings) -> None:
    certificate = settings.certificate_file
    assert certificate is not None
    key, named = (
        (certificate, "certificate_file")
        if settings.key_file is None
        else (
            settings.key_file,
            "key_file",
        )
    )
    require_private(key, f"tls.{named}")
    # Without any password at all the library would ask for one at the terminal.
    try:
        context.load_cert_chain(certificate, key, password=_password(settings))
    except (OSError, ValueError) as error:  # the latter: a password too long to be one
        msg = f"tls.certificate_file {certificate} with the key in {key} cannot be used: "
        raise ConfigError(msg + _reason(error)) from error


def _password(settings: TlsSettings) -> str:
    if settings.key_password is not None:
        return settings.key_password.value
    path = settings.key_password_file
    if path is None:
        return ""
    require_private(path, "tls.key_password_file")
    return text_of(path, "tls.key_password_file").rstrip("\r\n")


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "it is no PEM file, or the password is wrong").lower()
    said = error.strerror if isinstance(error, OSError) else str(error)
    return said or type(error).__name__


_PEM: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----", re.ASCII
)
_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
_FORMS: Final = {_UTC_TIME: "%y%m%d%H%M%SZ", _GENERALIZED_TIME: "%Y%m%d%H%M%SZ"}
_NAME_CHARS_MAX: Final = 256
_SAN: Final = ("URI", "DNS")


@dataclass(frozen=True, slots=True)
class Validity:
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
    """
    Return the names in a result of `getpeercert`, each behind its kind: `URI:`, `DNS:` or `CN:`.

    A common name counts only in a certificate without any alternative name, and of several only
    the last one: authorities check alternative names, and let the requester choose the rest.
    """
    alternatives = certificate.get("subjectAltName", ())
    subject = certificate.get("subject", ())
    assert isinstance(alternatives, tuple), alternatives
    assert isinstance(subject, tuple), subject
    found = [(one, str(value)) for one in _SAN for kind, value in alternatives if kind == one]
    if not alternatives:
        common = [str(value) for part in subject for kind, value in part if kind == "commonName"]
        found = [("CN", name) for name in common[-1:]]
    return tuple(
        dict.fromkeys(f"{kind}:{name}" for kind, name in found if 0 < len(name) <= _NAME_CHARS_MAX)
    )


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
