"""
Requests to a sidecar by HTTP, each of which may be repeated: an answer is whole, or none. Secrets
stand in files, are read when needed and never kept.
"""

from __future__ import annotations

import http.client
import logging
import os
import random
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from tenacity import Retrying, retry_if_result

from rlmm.base.loopback import is_loopback
from rlmm.base.private_files import require_private
from rlmm.errors import ConfigError, LogNotPermitted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenacity import RetryCallState

    from spark_tiering.segment_sources.settings import SidecarSourceSettings

_log = logging.getLogger(__name__)

JSON_BYTES_MAX: Final = 256 * 1024 * 1024
_TOKEN_BYTES_MAX: Final = 8 * 1024
_BUSY: Final = frozenset({429, 500, 503, 504})
"""Statuses after which the same question may be answered."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Names one sidecar, and how it is reached; holds no secret."""

    address: str
    settings: SidecarSourceSettings

    def place(self) -> tuple[str, str, int]:
        """Return scheme, host and port. Raise `ConfigError` for a text that is no address."""
        try:
            parts = urlsplit(self.address)
            host, port = parts.hostname, parts.port
        except ValueError:
            parts, host, port = urlsplit(""), None, None
        is_plain = parts.path in {"", "/"} and not (parts.query or parts.fragment or parts.username)
        if parts.scheme not in {"http", "https"} or not host or port is None or not is_plain:
            msg = f"a sidecar's address is https://HOST:PORT, got {self.address!r}"
            raise ConfigError(msg)
        return parts.scheme, host, port


class SidecarResponse(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class SidecarFaultKind(StrEnum):
    """Names the fault in place of an answer; each is retried in its own way."""

    UNREACHED = "unreached"
    TIMED_OUT = "timed-out"
    CUT = "cut"
    """The answer ended before its end."""
    BUSY = "busy"
    """The sidecar says that it cannot answer now."""


class SidecarFault(NamedTuple):
    """Tells why there is no answer; *answer* is that of a busy sidecar."""

    kind: SidecarFaultKind
    detail: str
    answer: SidecarResponse | None = None


class _Policy(NamedTuple):
    attempts_max: int
    first_s: float
    last_s: float


_POLICIES: Final = {
    SidecarFaultKind.UNREACHED: _Policy(6, 0.5, 10.0),
    # Each has cost a whole time-out already.
    SidecarFaultKind.TIMED_OUT: _Policy(3, 0.5, 5.0),
    SidecarFaultKind.CUT: _Policy(5, 0.2, 5.0),
    SidecarFaultKind.BUSY: _Policy(6, 0.5, 10.0),
}


def ask(
    endpoint: Endpoint,
    path: str,
    parameters: Mapping[str, object],
    *,
    asked: tuple[int, int] | None = None,
    bytes_max: int = JSON_BYTES_MAX,
) -> SidecarResponse | SidecarFault:
    """Return the answer, [start, end) if *asked*; `LogNotPermitted` if no retry helps."""
    target = f"{path}?{urlencode({name: str(value) for name, value in parameters.items()})}"
    headers = {"Accept-Encoding": "identity"}
    if asked is not None:
        headers["Range"] = f"bytes={asked[0]}-{asked[1] - 1}"
    retrying = Retrying(
        sleep=lambda pause_s: time.sleep(pause_s),  # noqa: PLW0108 - the one of the moment
        retry=retry_if_result(lambda result: isinstance(result, SidecarFault)),
        stop=lambda state: state.attempt_number >= _POLICIES[_fault(state).kind].attempts_max,
        wait=_pause,
        before_sleep=lambda state: _tell(endpoint, state),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
    )
    result: SidecarResponse | SidecarFault = retrying(
        _attempt, endpoint, target, headers, bytes_max
    )
    return result


def _fault(state: RetryCallState) -> SidecarFault:
    assert state.outcome is not None
    result = state.outcome.result()
    assert isinstance(result, SidecarFault)
    return result


def _pause(state: RetryCallState) -> float:
    fault = _fault(state)
    policy = _POLICIES[fault.kind]
    limit_s = min(policy.first_s * 2.0 ** (state.attempt_number - 1), policy.last_s)
    told = "" if fault.answer is None else fault.answer.headers.get("retry-after", "")
    if told.isascii() and told.isdigit() and len(told) < 5:
        limit_s = max(limit_s, min(float(told), policy.last_s))
    return random.uniform(limit_s / 2, limit_s)  # noqa: S311 - no secret


def _tell(endpoint: Endpoint, state: RetryCallState) -> None:
    fault = _fault(state)
    _log.info(
        "%s is asked again after attempt %d: %s", endpoint.address, state.attempt_number, fault
    )


def _attempt(
    endpoint: Endpoint, target: str, headers: Mapping[str, str], bytes_max: int
) -> SidecarResponse | SidecarFault:
    kept = _KEPT.take(endpoint)
    if kept is not None:
        outcome = _over(kept, endpoint, target, headers, bytes_max)
        # The sidecar closes connections that rest: that is no fault, and costs no pause.
        if not (isinstance(outcome, SidecarFault) and outcome.kind is SidecarFaultKind.UNREACHED):
            return outcome
    return _over(_Connection(endpoint), endpoint, target, headers, bytes_max)


def _over(
    connection: _Connection,
    endpoint: Endpoint,
    target: str,
    headers: Mapping[str, str],
    bytes_max: int,
) -> SidecarResponse | SidecarFault:
    settings = endpoint.settings
    kind = SidecarFaultKind.UNREACHED
    answer: SidecarResponse | None = None
    is_kept = False
    try:
        made = connection.made
        if settings.token_file:
            _require_unread(endpoint, made)
            headers = {**headers, "Authorization": f"Bearer {_token(settings.token_file)}"}
        made.request("GET", target, headers=dict(headers))
        response = made.getresponse()
        kind = SidecarFaultKind.CUT
        told = {name.lower(): value for name, value in response.getheaders()}
        length = response.length
        if length is None or length > bytes_max:
            msg = f"an answer of {length} bytes, at most {bytes_max} make sense"
            return SidecarFault(SidecarFaultKind.CUT, msg)
        answer = SidecarResponse(response.status, told, response.read())
        is_kept = not response.will_close
    except TimeoutError:
        return SidecarFault(
            SidecarFaultKind.TIMED_OUT, f"no answer in {settings.timeout_ms / 1_000:g} s"
        )
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError) as error:
        return SidecarFault(kind, _words(error))
    except ssl.SSLError as error:
        msg = f"{endpoint.address}: TLS is refused: {_words(error)}"
        raise LogNotPermitted(msg) from error
    except (OSError, http.client.HTTPException) as error:
        return SidecarFault(kind, _words(error))
    finally:
        if is_kept:
            _KEPT.put(endpoint, connection)
        else:
            connection.close()
    if answer.status in _BUSY:
        return SidecarFault(SidecarFaultKind.BUSY, f"status {answer.status}", answer)
    return answer


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _require_unread(endpoint: Endpoint, made: http.client.HTTPConnection) -> None:
    """Refuse to send the token where others could read it on its way."""
    if isinstance(made, http.client.HTTPSConnection) or endpoint.settings.is_plaintext_token:
        return
    if made.sock is None:
        made.connect()
    if not is_loopback(made.sock.getpeername()):
        msg = (
            f"the token is not sent to {endpoint.address}, which is another machine, without TLS: "
            "name it by https://, or say --source-plaintext-token"
        )
        raise ConfigError(msg)


def _token(path: str) -> str:
    try:
        require_private(Path(path), "the token file", gives_rights=False)
        with Path(path).open("rb") as file:
            token = file.read(_TOKEN_BYTES_MAX).decode("ascii").strip()
    except ConfigError as error:
        raise LogNotPermitted(str(error)) from error
    except OSError as error:
        msg = f"the token file {path} cannot be read: {error.strerror}"
        raise LogNotPermitted(msg) from error
    except UnicodeDecodeError:
        token = ""
    if not token or not token.isprintable() or " " in token:
        msg = f"the token file {path} does not hold one token"
        raise LogNotPermitted(msg)
    return token


def _tls_context(settings: SidecarSourceSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca_file or None)
        if settings.certificate_file:
            # Without a password an encrypted key would be asked for on the terminal.
            key_file = settings.key_file or None
            context.load_cert_chain(settings.certificate_file, key_file, password="")
    except (OSError, ValueError) as error:  # TLS's own errors among them
        named = [settings.ca_file, settings.certificate_file, settings.key_file]
        msg = f"TLS files {', '.join(filter(None, named))} cannot be used: {_words(error)}"
        raise LogNotPermitted(msg) from error
    return context


class _Connection:
    def __init__(self, endpoint: Endpoint) -> None:
        scheme, host, port = endpoint.place()
        timeout_s = endpoint.settings.timeout_ms / 1_000
        self.made = (
            http.client.HTTPConnection(host, port, timeout=timeout_s)
            if scheme == "http"
            else http.client.HTTPSConnection(
                host, port, timeout=timeout_s, context=_tls_context(endpoint.settings)
            )
        )

    def close(self) -> None:
        with suppress(OSError):
            self.made.close()

    def __del__(self) -> None:
        if hasattr(self, "made"):
            self.close()


class _Kept(threading.local):
    def __init__(self) -> None:
        self._pid = os.getpid()
        self._connections: dict[Endpoint, _Connection] = {}

    def take(self, endpoint: Endpoint) -> _Connection | None:
        if self._pid != os.getpid():
            # Forked off: these are the other process's, which goes on to use them.
            self._pid, self._connections = os.getpid(), {}
        return self._connections.pop(endpoint, None)

    def put(self, endpoint: Endpoint, connection: _Connection) -> None:
        self._connections[endpoint] = connection


_KEPT: Final = _Kept()
