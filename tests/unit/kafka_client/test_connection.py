"""A request on its way through the library's connection, and everything that can come back."""

from __future__ import annotations

import asyncio
import gc
import io
import logging
import socket
import ssl
from typing import TYPE_CHECKING, Any, cast

import pytest
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaConnectionError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from rlmm.base.secret import Secret
from rlmm.errors import ConfigError, LogError, LogNotPermitted, LogUnavailable, UnsupportedVersion
from rlmm.kafka_client.connections.connection import (
    BrokerConnection,
    ClearTextFilter,
    Dialer,
    address_text,
)
from rlmm.kafka_client.connections.diagnosis import diagnose, refused_token
from rlmm.kafka_client.settings import (
    KafkaSettings,
    SaslMechanism,
    SecurityProtocol,
    SecuritySettings,
)
from rlmm.kafka_messages.cluster import MetadataRequest
from rlmm.kafka_messages.fetch import FetchRequest
from rlmm.kafka_messages.offsets import LATEST_TIERED, ListOffsetsRequest
from rlmm.metadata.ids import Uuid

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from aiokafka.conn import AIOKafkaConnection


HEADER = (7).to_bytes(4) + b"\x00"
"""Of an answer: its number, no tags."""
NO_METADATA = bytes(4) + b"\x01" + b"\x02c" + bytes(4) + b"\x01" + b"\x00"
SPOKEN = {1: (4, 18), 3: (0, 13)}


OPENED: list[BrokerConnection] = []


class MadeConnection:
    """Acts like the library's connection, without a socket."""

    def __init__(self, answer: bytes | Exception, spoken: dict[int, tuple[int, int]]) -> None:
        self.sent: list[bytes] = []
        self.is_connected = True
        self._answer = answer
        self._spoken = spoken

    def connected(self) -> bool:
        return self.is_connected

    def send(self, request: Any) -> Coroutine[None, None, Any]:
        if isinstance(self._answer, ConnectionError):
            raise KafkaConnectionError("broken") from self._answer
        prepared = request.prepare(self._spoken)
        header = prepared.build_request_header(correlation_id=7, client_id="me")
        self.sent.append(header.encode() + prepared.encode())
        return self._take(prepared)

    async def _take(self, prepared: Any) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        buffer = io.BytesIO(self._answer)
        assert prepared.parse_response_header(buffer).correlation_id == 7
        answer = prepared.RESPONSE_TYPE.decode(buffer)
        assert repr(answer) == f"{len(self._answer)} bytes"
        return answer

    def close(self) -> asyncio.Future[None]:
        self.is_connected = False
        closed = asyncio.get_running_loop().create_future()
        closed.set_result(None)
        return closed


def connection(
    answer: bytes | Exception, spoken: dict[int, tuple[int, int]] | None = None
) -> tuple[BrokerConnection, MadeConnection]:
    made = MadeConnection(answer, SPOKEN if spoken is None else spoken)
    ours = BrokerConnection(cast("AIOKafkaConnection", made), "broker:9092", SecuritySettings())
    OPENED.append(ours)
    return ours, made


@pytest.fixture(autouse=True)
def closed_in_the_end() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop()._is_closed = True


async def test_connection_when_dropped_without_being_closed_then_tells() -> None:
    """A dropped connection warns, because the library keeps its socket."""
    ours, _ = connection(NO_METADATA)
    OPENED.clear()
    with pytest.warns(ResourceWarning, match="broker:9092: a connection was dropped, not closed"):
        del ours


async def test_call_when_answered_then_request_and_answer_are_whole() -> None:
    """Header and body go out in the chosen version; the answer comes without its header."""
    ours, made = connection(HEADER + NO_METADATA)
    found = await ours.call(MetadataRequest(["t"]))
    assert (found.cluster_id, found.brokers) == ("c", ())
    assert made.sent[0].startswith(bytes.fromhex("0003000c0000000700026d6500"))
    assert ours.is_open


NO_SENSE = "broker:9092: the answer to Metadata makes no sense"
BROKEN: dict[str, tuple[bytes | Exception, str]] = {
    "cut off": (HEADER + NO_METADATA[:6], NO_SENSE),
    "empty": (HEADER, NO_SENSE),
    "no header": (b"\x00\x00\x00\x07", NO_SENSE),
    "a length beyond all": (HEADER + bytes(4) + b"\xff\xff\xff\xff\x0f", NO_SENSE),
    "the connection breaks": (KafkaConnectionError("closed"), "other side closed"),
    "late": (TimeoutError(), "no answer in time"),
}


@pytest.mark.parametrize(("answer", "says"), BROKEN.values(), ids=BROKEN)
async def test_call_when_its_answer_fails_then_the_connection_ends(
    answer: bytes | Exception, says: str
) -> None:
    """The error comes from the answer, since the request may have arrived, and nothing follows."""
    ours, _ = connection(answer)
    waiting = ours.call(MetadataRequest(["t"]))
    with pytest.raises(LogUnavailable, match=says):
        await waiting
    assert not ours.is_open


async def test_send_when_closed_or_broken_then_fails_at_once() -> None:
    """An error raised by `send` means that the request was not sent; a second close is harmless."""
    ours, _ = connection(b"")
    await ours.close()
    await ours.close()
    assert not ours.is_open
    with pytest.raises(LogUnavailable, match="the connection is closed"):
        _ = ours.call(MetadataRequest(["t"]))
    broken, _ = connection(ConnectionResetError())
    with pytest.raises(LogUnavailable, match="other side closed"):
        _ = broken.call(MetadataRequest(["t"]))


async def test_send_when_its_task_ends_before_its_first_step_then_nothing_complains() -> None:
    """An answer without a waiting caller is dropped without a warning."""
    ours, made = connection(NO_METADATA)
    waiting = asyncio.create_task(ours.call(MetadataRequest(["t"])))
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert len(made.sent) == 1
    del waiting
    gc.collect()  # a coroutine that was never awaited would tell, and a warning is an error here


FETCH = FetchRequest(Uuid(bytes(16)), [], wait_ms=0, bytes_max=1)
TOO_OLD: dict[str, tuple[dict[int, tuple[int, int]], Any, type[Exception], str]] = {
    "for all": ({1: (0, 11)}, FETCH, LogUnavailable, r"Fetch in versions \(0, 11\).*Kafka 3.1"),
    "for one request": (
        {2: (1, 8)},
        ListOffsetsRequest({}, LATEST_TIERED),
        UnsupportedVersion,
        r"ListOffsets in versions \(1, 8\).* 3.9",
    ),
}


@pytest.mark.parametrize(("spoken", "request_", "error", "says"), TOO_OLD.values(), ids=TOO_OLD)
async def test_send_when_the_broker_is_too_old_then_both_versions_are_named(
    spoken: dict[int, tuple[int, int]], request_: Any, error: type[Exception], says: str
) -> None:
    """The error names both versions, is not that of an unreachable broker, and nothing is sent."""
    ours, made = connection(HEADER + NO_METADATA, {**SPOKEN, **spoken})
    with pytest.raises(error, match=f"speaks {says}"):
        _ = ours.call(request_)
    assert made.sent == []
    assert (await ours.call(MetadataRequest(["t"]))).cluster_id == "c"


async def test_f98_dial_when_the_address_is_a_wildcard_then_the_loopback_is_dialed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client connects to the loopback when the broker listens on a wildcard."""
    dialed: list[tuple[str, int, object, object]] = []

    async def create(host: str, port: int, **options: object) -> MadeConnection:
        dialed.append((host, port, options["client_id"], options["security_protocol"]))
        return MadeConnection(b"", SPOKEN)

    monkeypatch.setattr("rlmm.kafka_client.connections.connection.create_conn", create)
    dialer = Dialer(KafkaSettings(("x:1",)), {"security_protocol": "SSL"})
    hosts = ("0.0.0.0", "::", "elsewhere")
    OPENED.extend([await dialer.dial(host, 9092, "consumer") for host in hosts])
    assert [host for host, *_ in dialed] == ["127.0.0.1", "::1", "elsewhere"]
    assert {(client, protocol) for _, _, client, protocol in dialed} == {
        ("__remote_log_metadata_client_rlmm_consumer", "SSL")
    }


@pytest.mark.parametrize("is_refused", [False, True], ids=["no answer", "no token"])
async def test_dial_when_it_fails_then_ends_in_time_with_the_cause(
    monkeypatch: pytest.MonkeyPatch, is_refused: bool
) -> None:
    """Connecting and logging in together end in time; a token provider's error comes unchanged."""

    async def create(*_: object, **__: object) -> MadeConnection:
        if is_refused:
            raise LogNotPermitted("the token server is closed")
        await asyncio.sleep(1000)
        raise AssertionError

    monkeypatch.setattr("rlmm.kafka_client.connections.connection.create_conn", create)
    settings = KafkaSettings(("x:1",), socket_connection_setup_timeout_ms=4000)
    begin = asyncio.get_running_loop().time()
    with pytest.raises(LogError, match=r"token server is closed|x:1: no answer in time") as caught:
        await Dialer(settings, {}).dial("x", 1, "admin")
    assert type(caught.value) is (LogNotPermitted if is_refused else LogUnavailable)
    assert asyncio.get_running_loop().time() - begin == (0 if is_refused else 4)


@pytest.mark.parametrize("version", ["0.13.9", "0.15.0", "0.140.0"])
async def test_client_when_aiokafka_has_another_minor_version_then_is_refused_by_name(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal names the version that is installed and the one that is needed."""
    monkeypatch.setattr("aiokafka.__version__", version)
    with pytest.raises(ConfigError, match=f"aiokafka {version} is installed.*needs 0.14"):
        await Dialer.prepare(KafkaSettings(("broker:9092",)))


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


def test_cause_when_nothing_is_configured_for_it_then_names_what_to_set() -> None:
    """The message asks for a truststore, names both reasons of a refused token, brackets IPv6."""
    security = SecuritySettings(security_protocol=SecurityProtocol.SSL)
    untrusted = diagnose(ADDRESS, security, certificate(20, "unable to get local issuer"))
    assert "signed it as ssl.truststore.location" in str(untrusted)
    assert "expired" in str(refused_token(ADDRESS, SECURITY))
    assert (address_text("host", 1), address_text("::1", 1)) == ("host:1", "[::1]:1")


def test_cause_when_ours_or_in_a_ring_then_is_passed_on_and_ends() -> None:
    """An error of ours from within the library is unchanged, and a ring of causes ends."""
    ours = LogNotPermitted("the token server is closed")
    assert diagnose(ADDRESS, SECURITY, behind(ours)) is ours
    error = KafkaConnectionError("closed")
    error.__cause__ = behind(error)
    assert "other side closed" in str(diagnose(ADDRESS, SECURITY, error))


def test_password_in_clear_text_when_sent_then_is_said_once_in_our_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The library's warning of each connection is one line of the process."""
    raw = "Sending username and password in the clear"
    logger = logging.getLogger("tests.clear_text")
    logger.addFilter(ClearTextFilter())
    for text in (raw, raw, "another warning"):
        logger.warning(text)
    first, other = (one.getMessage() for one in caplog.records)
    assert "SASL_PLAINTEXT and sasl.mechanism is PLAIN" in first
    assert other == "another warning"
    library = logging.getLogger("aiokafka.conn")
    assert [type(one) for one in library.filters] == [ClearTextFilter]
