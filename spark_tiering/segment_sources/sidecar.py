"""
Sidecars of broker hosts as a source: each serves its sealed segments, to be read only. A read
returns the requested bytes in full, or as many as the file has.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rlmm.errors import ConfigError, InvalidArgument, LogNotPermitted, LogUnavailable
from rlmm.metadata.ids import TopicIdPartition, Uuid
from spark_tiering.segment_sources.protocol import (
    FoundPartition,
    ReplicaOrigin,
    UnusablePlace,
    is_user_topic,
)
from spark_tiering.segment_sources.sidecar_http import Endpoint, SidecarFault, SidecarResponse, ask
from spark_tiering.segments.partition_files import REMOTE_PIECE_BYTES, SourceFileFacts

if TYPE_CHECKING:
    from rlmm.errors import RlmmError
    from spark_tiering.segment_sources.settings import SidecarSourceSettings

T = TypeVar("T")

_PATH: Final = "/v1/broker-log/"
_ERROR_BYTES_MAX: Final = 64 * 1024
_ABSENT: Final = "file-absent"
_NOT_SEALED: Final = "not-sealed"


@dataclass(frozen=True, slots=True)
class SidecarFiles:
    """The files of one partition in a folder that a sidecar serves; a value without a secret."""

    endpoint: Endpoint
    folder: str
    partition: TopicIdPartition

    @property
    def piece_bytes(self) -> int:
        return REMOTE_PIECE_BYTES

    def facts(self) -> dict[str, SourceFileFacts]:
        """Return every file, unreadable ones too; raises `ConfigError` for a missing folder."""
        files = _field(self.endpoint, self._told(), "files", list)
        return {
            _field(self.endpoint, one, "name", str): SourceFileFacts(
                _field(self.endpoint, one, "size_bytes", int),
                _field(self.endpoint, one, "modified_ms", int),
            )
            for one in files
        }

    def last_stable_offset(self) -> int | None:
        """Return the last stable offset that the sidecar has from the cluster, if any."""
        found = self._told().get("last_stable_offset")
        return found if type(found) is int else None

    def read(self, name: str, start: int, size: int) -> bytes:
        """Return [start, start + size), or to the end; `LogUnavailable` if not readable yet."""
        if size <= 0:
            return b""
        answer = _answer(
            self.endpoint,
            "file",
            {**self._parameters, "name": name},
            asked=(start, start + size),
            bytes_max=max(size, _ERROR_BYTES_MAX),
        )
        if answer.status == 206:
            return _part(self.endpoint, answer, start, size)
        if answer.status == 416 or _code(answer) == _ABSENT:
            return b""
        raise _refusal(self.endpoint, answer)

    @property
    def _parameters(self) -> dict[str, object]:
        partition = self.partition
        return {
            "folder": self.folder,
            "topic_id": partition.topic_id,
            "topic": partition.topic,
            "partition": partition.partition,
        }

    def _told(self) -> dict[str, Any]:
        answer = _answer(self.endpoint, "files", self._parameters)
        if _code(answer) == _ABSENT:
            msg = f"no partition's folder: {_message(answer)}"
            raise ConfigError(msg)
        return _object(self.endpoint, answer)


class SidecarSegmentSource:
    def __init__(self, settings: SidecarSourceSettings) -> None:
        """Raise `ConfigError` for a text that is no address; this asks no sidecar."""
        addresses = dict.fromkeys(address.rstrip("/") for address in settings.addresses)
        self._endpoints = [Endpoint(address, settings) for address in addresses]
        for endpoint in self._endpoints:
            endpoint.place()

    def partitions(self) -> tuple[list[FoundPartition], list[UnusablePlace]]:
        """List partitions; a silent sidecar is unusable, `LogUnavailable` if all are silent."""
        found: list[FoundPartition] = []
        unusable: list[UnusablePlace] = []
        away: list[UnusablePlace] = []
        for endpoint in self._endpoints:
            try:
                theirs, others = _partitions(endpoint)
            except LogUnavailable as error:
                away.append(UnusablePlace(endpoint.address, str(error)))
                continue
            found += theirs
            unusable += others
        if len(away) == len(self._endpoints):
            raise LogUnavailable("; ".join(one.why for one in away))
        return found, unusable + away

    def close(self) -> None:
        """Do nothing: each thread holds its own connections, and they end with it."""


def _partitions(endpoint: Endpoint) -> tuple[list[FoundPartition], list[UnusablePlace]]:
    answer = _answer(endpoint, "partitions", {})
    if answer.status == 404:
        msg = f"{endpoint.address} serves no log folders of brokers: {_message(answer)}"
        raise ConfigError(msg)
    told = _object(endpoint, answer)
    origins = {
        _field(endpoint, one, "folder", str): (one.get("node_id"), one.get("cluster_id") or "")
        for one in _field(endpoint, told, "folders", list)
    }
    found = []
    for one in _field(endpoint, told, "partitions", list):
        partition = _partition(endpoint, one)
        if not is_user_topic(partition.topic):
            continue
        folder = _field(endpoint, one, "folder", str)
        place = f"{endpoint.address}{folder}/{partition.topic}-{partition.partition}"
        found.append(
            FoundPartition(
                partition,
                SidecarFiles(endpoint, folder, partition),
                ReplicaOrigin(place, *origins.get(folder, (None, ""))),
                one.get("high_watermark"),
            )
        )
    unusable = [
        UnusablePlace(
            f"{endpoint.address}{_field(endpoint, one, 'place', str)}",
            _field(endpoint, one, "why", str),
        )
        for one in _field(endpoint, told, "unusable", list)
    ]
    return found, unusable


def _partition(endpoint: Endpoint, one: dict[str, Any]) -> TopicIdPartition:
    try:
        topic_id = Uuid.parse(_field(endpoint, one, "topic_id", str))
        topic, number = _field(endpoint, one, "topic", str), _field(endpoint, one, "partition", int)
        return TopicIdPartition(topic_id, topic, number)
    except InvalidArgument as error:
        raise _nonsense(endpoint, str(error)) from error


def _answer(
    endpoint: Endpoint, name: str, parameters: dict[str, object], **options: Any
) -> SidecarResponse:
    answer = ask(endpoint, _PATH + name, parameters, **options)
    if isinstance(answer, SidecarFault):
        why = answer.detail
        if answer.answer is not None:
            why = _message(answer.answer)
        msg = f"{endpoint.address} did not answer ({answer.kind}): {why}"
        raise LogUnavailable(msg)
    return answer


def _part(endpoint: Endpoint, answer: SidecarResponse, start: int, size: int) -> bytes:
    told, end = answer.headers.get("content-range", ""), start + len(answer.body)
    if not told.startswith(f"bytes {start}-{end - 1}/") or end > start + size:
        raise _nonsense(endpoint, f"Content-Range {told!r} for {len(answer.body)} bytes at {start}")
    return answer.body


def _refusal(endpoint: Endpoint, answer: SidecarResponse) -> RlmmError:
    code, message = _code(answer), _message(answer)
    if code == _NOT_SEALED:
        return LogUnavailable(f"{endpoint.address}: {message}")
    if 400 <= answer.status < 500 or answer.status == 502:
        msg = f"{endpoint.address} refuses with status {answer.status}: {message}"
        return LogNotPermitted(msg)
    return _nonsense(endpoint, f"status {answer.status}: {message}")


def _object(endpoint: Endpoint, answer: SidecarResponse) -> dict[str, Any]:
    if answer.status != 200:
        raise _refusal(endpoint, answer)
    try:
        told = json.loads(answer.body)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise _nonsense(endpoint, "its answer is no JSON")
    return told


def _field(endpoint: Endpoint, told: Any, name: str, kind: type[T]) -> T:
    """Return a field that has to be there; a truth value is no number."""
    value = told.get(name) if isinstance(told, dict) else None
    if type(value) is not kind:
        raise _nonsense(endpoint, f"its answer has no {name}")
    return value


def _code(answer: SidecarResponse) -> str:
    return str(_error(answer).get("code", ""))


def _message(answer: SidecarResponse) -> str:
    told = _error(answer).get("message")
    return told if isinstance(told, str) else f"status {answer.status}, and no word of why"


def _error(answer: SidecarResponse) -> dict[str, Any]:
    if answer.status < 400:
        return {}
    try:
        told = json.loads(answer.body)["error"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return {}
    return told if isinstance(told, dict) else {}


def _nonsense(endpoint: Endpoint, why: str) -> LogUnavailable:
    return LogUnavailable(f"{endpoint.address} makes no sense: {why}: is it a sidecar of ours?")
