"""
Security as the connections take it: the TLS context, the user, the tokens.

Reads the files of the configuration; what is wrong with one is a `ConfigError` that names it.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from aiokafka.abc import AbstractTokenProvider

from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from rlmm.log.kafka.settings import SecuritySettings


class TokenProvider(Protocol):
    """
    Gives the bearer tokens of OAUTHBEARER.

    Asked once for every new connection: it keeps a token as long as that is valid. What it raises
    should be a `LogNotPermitted` or a `LogUnavailable`; it reaches the caller as it is.
    """

    async def token(self) -> str:
        """A token that is valid now."""


class _Tokens(AbstractTokenProvider):
    """A `TokenProvider` as the library wants it."""

    def __init__(self, provider: TokenProvider) -> None:
        self._provider = provider

    async def token(self) -> str:
        return await self._provider.token()


def tls_context(settings: SecuritySettings) -> ssl.SSLContext | None:
    """The TLS context; None without TLS. Reads files: not for the event loop."""
    if not settings.security_protocol.is_tls:
        return None
    context = ssl.create_default_context(cafile=_truststore(settings.ssl_truststore_location))
    context.check_hostname = settings.ssl_endpoint_identification_algorithm == "https"
    if settings.ssl_keystore_location is not None:
        _load_keystore(context, settings)
    return context


def library_options(
    settings: SecuritySettings, context: ssl.SSLContext | None
) -> dict[str, object]:
    """The library's names for all of it."""
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


def _truststore(location: str | None) -> str | None:
    """The file of trusted certificates, once it is known to hold some."""
    if location is None:
        return None
    key = "ssl.truststore.location"
    _require_readable(key, location)
    try:
        ssl.create_default_context(cafile=location)
    except ssl.SSLError as error:
        msg = f"{key}: {location} holds no certificate in PEM form ({error.reason or error})"
        raise ConfigError(msg) from error
    return location


def _load_keystore(context: ssl.SSLContext, settings: SecuritySettings) -> None:
    location, password = settings.ssl_keystore_location, settings.ssl_key_password
    assert location is not None
    key = "ssl.keystore.location"
    _require_readable(key, location)
    try:
        # Without a password given, one that is needed would be asked for at the terminal.
        context.load_cert_chain(location, password=password.value if password else "")
    except ssl.SSLError as error:
        msg = (
            f"{key}: {location} holds no private key with its certificate in PEM form that "
            f"ssl.key.password opens ({error.reason or error})"
        )
        raise ConfigError(msg) from error


def _require_readable(key: str, location: str) -> None:
    try:
        with Path(location).open("rb"):
            return
    except OSError as error:
        msg = f"{key}: {location} cannot be read: {error.strerror}"
        raise ConfigError(msg) from error
