"""Diagnosis of a failed connection: one line, without secrets, by the most specific known cause."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING

from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from rlmm.errors import LogError, LogNotPermitted, LogUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.kafka_client.settings import SecuritySettings

_HOSTNAME_MISMATCH = 62
"""OpenSSL's code for a certificate that is made out for another name."""
_CERTIFICATE_ALERTS = ("CERTIFICATE", "UNKNOWN_CA", "HANDSHAKE_FAILURE")
_TLS_ALERT = 0x1503
"""How a TLS listener's answer begins, where the length of an answer was expected."""
_CHAIN_MAX = 10


def diagnose(address: str, security: SecuritySettings, error: BaseException) -> LogError:
    """Return the error that a caller gets for *error*, met while talking with a broker."""
    chain = list(_chain(error))
    for cause in chain:
        if isinstance(cause, LogError):  # a token provider speaks for itself
            return cause
    for cause in chain:
        for kind, explain in _EXPLAINED:
            if isinstance(cause, kind):
                found = explain(address, security, cause)
                if found is not None:
                    return found
    if isinstance(error, KafkaError | EOFError):
        return _closed(address, security, chain[-1])
    return LogUnavailable(f"{address}: {_words(error)}")


def _chain(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    for _ in range(_CHAIN_MAX):
        if found is None:
            return
        yield found
        found = found.__cause__ or found.__context__


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _refused_user(address: str, security: SecuritySettings, error: BaseException) -> LogError:
    reason = str(error).partition(": ")[2] or str(error)
    return LogNotPermitted(
        f"{address}: the broker refused user {security.sasl_username!r} by "
        f"{security.sasl_mechanism} ({reason}): correct sasl.username and sasl.password"
    )


def refused_token(address: str, security: SecuritySettings) -> LogNotPermitted:
    return LogNotPermitted(
        f"{address}: the broker refused the token by {security.sasl_mechanism}: it is expired, or "
        "not made out for this cluster; see to who gives the tokens"
    )


def _no_mechanism(address: str, security: SecuritySettings, error: BaseException) -> LogError:
    return LogNotPermitted(
        f"{address}: the listener does not offer sasl.mechanism {security.sasl_mechanism} "
        f"({error}): set one that it offers"
    )


def _no_sasl(address: str, security: SecuritySettings, error: BaseException) -> LogError:
    del error
    return LogNotPermitted(
        f"{address}: the listener does not use SASL, but security.protocol is "
        f"{security.security_protocol}: correct it, or the port"
    )


def _untrusted(address: str, security: SecuritySettings, error: BaseException) -> LogError:
    assert isinstance(error, ssl.SSLCertVerificationError)
    reason = error.verify_message
    if error.verify_code == _HOSTNAME_MISMATCH:
        what = "use a name that the certificate has in bootstrap.servers and advertised.listeners"
    elif security.ssl_truststore_location is None:
        what = "name the file with the certificate that signed it as ssl.truststore.location"
    else:
        what = f"{security.ssl_truststore_location} (ssl.truststore.location) does not hold its CA"
    return LogNotPermitted(f"{address}: the broker's certificate is not trusted ({reason}): {what}")


def _tls(address: str, security: SecuritySettings, error: BaseException) -> LogError:
    assert isinstance(error, ssl.SSLError)
    reason = error.reason or _words(error)
    if "ALERT" in reason and any(word in reason for word in _CERTIFICATE_ALERTS):
        ours = security.ssl_keystore_location or "none is configured"
        return LogNotPermitted(
            f"{address}: the broker refused our certificate ({reason}): it must be one that the "
            f"broker trusts, in ssl.keystore.location ({ours})"
        )
    return LogUnavailable(
        f"{address}: no TLS connection ({reason}): is this the port of a listener of "
        f"security.protocol {security.security_protocol}?"
    )


def _unknown_host(address: str, _: SecuritySettings, error: BaseException) -> LogError:
    return LogUnavailable(f"{address}: the host name is not known ({error}): check it")


def _not_listening(address: str, _: SecuritySettings, error: BaseException) -> LogError:
    del error
    return LogUnavailable(f"{address}: no broker listens there: is Kafka up, and the port right?")


def _no_answer(address: str, security: SecuritySettings, error: BaseException) -> LogError:
    del error
    return LogUnavailable(
        f"{address}: no answer in time: is it reachable, and a listener of security.protocol "
        f"{security.security_protocol}?"
    )


def _cut_off(address: str, security: SecuritySettings, error: BaseException) -> LogError:
    assert isinstance(error, asyncio.IncompleteReadError)
    if (error.expected or 0) >> 16 == _TLS_ALERT:
        return LogUnavailable(
            f"{address}: this is a listener with TLS, but security.protocol is "
            f"{security.security_protocol}: correct it, or the port"
        )
    return _closed(address, security, error)


def _closed(address: str, security: SecuritySettings, error: BaseException) -> LogError:
    del error
    return LogUnavailable(
        f"{address}: the other side closed the connection: the broker went away, or its listener "
        f"does not speak security.protocol {security.security_protocol}"
    )


_EXPLAINED = (
    (SaslAuthenticationFailed, _refused_user),
    (UnsupportedSaslMechanismError, _no_mechanism),
    (IllegalSaslStateError, _no_sasl),
    (ssl.SSLCertVerificationError, _untrusted),
    (ssl.SSLError, _tls),
    (socket.gaierror, _unknown_host),
    (ConnectionRefusedError, _not_listening),
    (TimeoutError, _no_answer),
    (ConnectionResetError, _closed),
    (BrokenPipeError, _closed),
    (asyncio.IncompleteReadError, _cut_off),
)
"""The texts of known causes and the line for each; an earlier text may be part of a later one."""
