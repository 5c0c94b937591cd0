"""Client options for security; `ConfigError` names a file that cannot be used."""

from __future__ import annotations

import logging
import os
import ssl
from typing import TYPE_CHECKING, Protocol

from aiokafka.abc import AbstractTokenProvider

from rlmm.base.private_files import read_regular
from rlmm.errors import ConfigError
from rlmm.kafka_client.security.key_stores import StoreUnreadable, is_store, pem_of, read_store

if TYPE_CHECKING:
    from rlmm.base.secret import Secret
    from rlmm.kafka_client.security.key_stores import StoreContent
    from rlmm.kafka_client.settings import SecuritySettings

_log = logging.getLogger(__name__)

STORE_BYTES_MAX = 16 * 1024 * 1024
"""No file of certificates is longer."""
_CONVERT = (
    "convert it by keytool -importkeystore -srckeystore STORE -destkeystore STORE.p12 "
    "-deststoretype PKCS12, or to PEM by openssl pkcs12 -in STORE.p12 -out STORE.pem"
)


class TokenProvider(Protocol):
    """Gives a bearer token of OAUTHBEARER per connection; the caller gets its errors unchanged."""

    async def token(self) -> str: ...


class _Tokens(AbstractTokenProvider):
    """A `TokenProvider` as the library wants it."""

    def __init__(self, provider: TokenProvider) -> None:
        self._provider = provider

    async def token(self) -> str:
        return await self._provider.token()


def tls_context(settings: SecuritySettings) -> ssl.SSLContext | None:
    """Return the TLS context; None without TLS. Reads files: not for the event loop."""
    if not settings.security_protocol.is_tls:
        return None
    context = _trusting(settings)
    context.check_hostname = settings.ssl_endpoint_identification_algorithm == "https"
    if not context.check_hostname:
        _log.warning(
            "ssl.endpoint.identification.algorithm is empty: every certificate of a trusted "
            "authority passes for that of a broker, which gets the password; remove the key"
        )
    if settings.ssl_keystore_location is not None:
        _load_keystore(context, settings)
    return context


def library_options(
    settings: SecuritySettings, context: ssl.SSLContext | None
) -> dict[str, object]:
    options: dict[str, object] = {
        "security_protocol": settings.security_protocol.value,
        "ssl_context": context,
    }
    if settings.sasl_mechanism is not None:
        options["sasl_mechanism"] = settings.sasl_mechanism.value
    if settings.sasl_username is not None and settings.sasl_password is not None:
        options["sasl_plain_username"] = settings.sasl_username
        options["sasl_plain_password"] = settings.sasl_password.value
    if settings.token_provider is not None:
        options["sasl_oauth_token_provider"] = _Tokens(settings.token_provider)
    return options


def _trusting(settings: SecuritySettings) -> ssl.SSLContext:
    key, location = "ssl.truststore.location", settings.ssl_truststore_location
    if location is None:
        return ssl.create_default_context()
    content = _content(key, location)
    if is_store(content):
        store = _opened(key, location, content, settings.ssl_truststore_password)
        if not store.trusted:
            raise ConfigError(f"{key}: {location} holds no certificate")
        return ssl.create_default_context(cadata=b"".join(store.trusted))
    try:
        return ssl.create_default_context(cafile=location)
    except ssl.SSLError as error:
        raise ConfigError(
            f"{key}: {location} holds no certificate in PEM form, and is no PKCS12 or JKS store "
            f"({error.reason or error})"
        ) from error


def _load_keystore(context: ssl.SSLContext, settings: SecuritySettings) -> None:
    location, password = settings.ssl_keystore_location, settings.ssl_key_password
    assert location is not None
    key = "ssl.keystore.location"
    content = _content(key, location)
    try:
        if is_store(content):
            opens = settings.ssl_keystore_password
            store = _opened(key, location, content, opens, password, wants_key=True)
            if store.key is None or not store.chain:
                raise ConfigError(f"{key}: {location} holds no private key with its certificate")
            _load_pem(context, pem_of(store))
        else:
            # Without a password given, one that is needed would be asked for at the terminal.
            context.load_cert_chain(location, password=password.value if password else "")
    except ssl.SSLError as error:
        raise ConfigError(
            f"{key}: {location} holds no private key with its certificate in PEM form that "
            f"ssl.key.password opens ({error.reason or error})"
        ) from error


def _load_pem(context: ssl.SSLContext, pem: bytes) -> None:
    descriptor = os.memfd_create("keystore", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, pem)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _opened(
    key: str,
    location: str,
    content: bytes,
    password: Secret | None,
    key_password: Secret | None = None,
    *,
    wants_key: bool = False,
) -> StoreContent:
    try:
        return read_store(
            content,
            None if password is None else password.value,
            wants_key=wants_key,
            key_password=None if key_password is None else key_password.value,
        )
    except StoreUnreadable as error:
        given = "without" if password is None else "with"
        opens = key.replace("location", "password")
        msg = f"{key}: {location} cannot be read {given} {opens}: {error}; {_CONVERT}"
        raise ConfigError(msg) from error


def _content(key: str, location: str) -> bytes:
    try:
        found = read_regular(location, STORE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{key}: {location} cannot be read: {error.strerror}") from error
    if len(found) > STORE_BYTES_MAX:
        msg = f"{key}: {location} is too large for certificates, more than {STORE_BYTES_MAX} bytes"
        raise ConfigError(msg)
    return found
