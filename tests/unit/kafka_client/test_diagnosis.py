"""Connection errors in one line: cause, place and remedy."""

from __future__ import annotations

import asyncio
import socket
import ssl

import pytest
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaConnectionError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from rlmm.errors import LogError, LogNotPermitted, LogUnavailable
from rlmm.kafka_client.connections.diagnosis import diagnose, refused_token
from rlmm.kafka_client.settings import SaslMechanism, Secret, SecurityProtocol, SecuritySettings

ADDRESS = "broker:9093"
SECURITY = SecuritySettings(
    security_protocol=SecurityProtocol.SASL_SSL,
    sasl_mechanism=SaslMechanism.PLAIN,
    sasl_username="me",
    sasl_password=Secret("s3cret"),
    ssl_truststore_location="/etc/ca.pem",
)


def behind(cause: BaseException) -> KafkaConnectionError:
    error = KafkaConnectionError("Connection at broker:9093 closed")
    error.__cause__ = cause
    return error


def certificate(code: int, message: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, message)
    error.verify_code, error.verify_message = code, message
    return error


def alert(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}] {reason.lower()}")
    error.reason = reason
    return error


CASES: dict[str, tuple[BaseException, type[LogError], tuple[str, ...]]] = {
    "password": (
        SaslAuthenticationFailed("bad credentials"),
        LogNotPermitted,
        ("refused user 'me' by PLAIN (bad credentials)", "sasl.password"),
    ),
    "mechanism": (
        UnsupportedSaslMechanismError("Enabled mechanisms are: ['SCRAM-SHA-512']"),
        LogNotPermitted,
        ("does not offer sasl.mechanism PLAIN", "SCRAM-SHA-512"),
    ),
    "no SASL there": (
        IllegalSaslStateError("connection"),
        LogNotPermitted,
        ("does not use SASL, but security.protocol is SASL_SSL",),
    ),
    "authority": (
        certificate(20, "unable to get local issuer certificate"),
        LogNotPermitted,
        ("unable to get local issuer", "/etc/ca.pem (ssl.truststore.location) does not hold"),
    ),
    "host name": (
        certificate(62, "Hostname mismatch"),
        LogNotPermitted,
        ("use a name that the certificate has in bootstrap.servers and advertised.listeners",),
    ),
    "our certificate": (
        behind(alert("TLSV13_ALERT_CERTIFICATE_REQUIRED")),
        LogNotPermitted,
        ("refused our certificate", "ssl.keystore.location (none is configured)"),
    ),
    "no TLS there": (
        alert("WRONG_VERSION_NUMBER"),
        LogUnavailable,
        ("no TLS connection (WRONG_VERSION_NUMBER)", "security.protocol SASL_SSL"),
    ),
    "host": (
        socket.gaierror(-2, "Name or service not known"),
        LogUnavailable,
        ("name is not known",),
    ),
    "port": (ConnectionRefusedError(111, "refused"), LogUnavailable, ("no broker listens",)),
    "silence": (TimeoutError(), LogUnavailable, ("no answer in time",)),
    "reset": (behind(ConnectionResetError()), LogUnavailable, ("other side closed",)),
    "end": (behind(asyncio.IncompleteReadError(b"", 4)), LogUnavailable, ("other side closed",)),
    "TLS there": (
        behind(asyncio.IncompleteReadError(b"\x00\x02\x02", 0x15030300)),
        LogUnavailable,
        ("this is a listener with TLS, but security.protocol is SASL_SSL",),
    ),
    "closed": (KafkaConnectionError("closed"), LogUnavailable, ("other side closed",)),
    "network": (OSError(101, "Network is unreachable"), LogUnavailable, ("unreachable",)),
    "nameless": (AssertionError(), LogUnavailable, ("AssertionError",)),
}


@pytest.mark.parametrize(("error", "kind", "parts"), CASES.values(), ids=CASES)
def test_cause_when_told_then_place_and_remedy_stand_in_one_line(
    error: BaseException, kind: type[LogError], parts: tuple[str, ...]
) -> None:
    """The line has cause, place and remedy; the kind says whether waiting helps."""
    told = diagnose(ADDRESS, SECURITY, error)
    assert type(told) is kind
    text = str(told)
    assert text.startswith(ADDRESS)
    assert not [part for part in parts if part not in text]
    assert "\n" not in text
    assert "s3cret" not in text


def test_cause_when_no_truststore_is_named_then_one_is_asked_for() -> None:
    """The message for a client without a truststore names the setting to add."""
    security = SecuritySettings(security_protocol=SecurityProtocol.SSL)
    told = diagnose(ADDRESS, security, certificate(20, "unable to get local issuer certificate"))
    assert "signed it as ssl.truststore.location" in str(told)


def test_cause_when_a_token_provider_says_it_then_is_passed_on() -> None:
    """The caller gets an error of ours from within the library unchanged."""
    ours = LogNotPermitted("the token server is closed")
    assert diagnose(ADDRESS, SECURITY, behind(ours)) is ours


def test_cause_when_errors_hang_on_each_other_in_a_ring_then_it_ends() -> None:
    """A chain that bites its own tail is followed no further than makes sense."""
    error = KafkaConnectionError("closed")
    error.__cause__ = behind(error)
    assert "other side closed" in str(diagnose(ADDRESS, SECURITY, error))


def test_token_when_refused_then_who_gives_it_is_to_be_seen_to() -> None:
    """Brokers do not say why, so both reasons are named."""
    assert "expired" in str(refused_token(ADDRESS, SECURITY))
