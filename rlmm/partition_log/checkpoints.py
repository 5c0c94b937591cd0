"""Kafka's small text files, both ways: offsets, leader epochs, a partition's topic id. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.partition_log.names import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TOPIC_ID_BYTES = 16
_VERSION = "0"
_OFFSET_MAX = 2**63 - 1
_EPOCH_MAX = 2**31 - 1
_DIGITS_MAX = 64
"""More than any number here has; some may lead with zeros."""
_PAIR = re.compile(r"(?P<name>[^:]+):\s+(?P<value>.*)")


@dataclass(frozen=True, slots=True)
class CheckpointFault:
    """The content of a file does not fit its name; *detail* says where."""

    detail: str


def format_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return _format(f"{name.topic} {name.number} {offset}" for name, offset in offsets.items())


def parse_offsets(content: bytes) -> dict[TopicPartition, int] | CheckpointFault:
    rows = _rows(content, 3)
    if isinstance(rows, CheckpointFault):
        return rows
    offsets: dict[TopicPartition, int] = {}
    for topic, number, offset in rows:
        if not _is_number(number, _EPOCH_MAX) or not _is_number(offset, _OFFSET_MAX):
            return CheckpointFault(f"no offset in {topic} {number} {offset}")
        offsets[TopicPartition(topic, int(number))] = int(offset)
    return offsets


def format_epochs(epochs: Iterable[tuple[int, int]]) -> bytes:
    """Write the leader epochs, each with the first offset that was written under it."""
    return _format(f"{epoch} {start_offset}" for epoch, start_offset in epochs)


def parse_epochs(content: bytes) -> list[tuple[int, int]] | CheckpointFault:
    rows = _rows(content, 2)
    if isinstance(rows, CheckpointFault):
        return rows
    epochs: list[tuple[int, int]] = []
    for epoch, start_offset in rows:
        if not _is_number(epoch, _EPOCH_MAX) or not _is_number(start_offset, _OFFSET_MAX):
            return CheckpointFault(f"no leader epoch in {epoch:.40} {start_offset:.40}")
        epochs.append((int(epoch), int(start_offset)))
    return epochs


def format_partition_metadata(topic_id: bytes) -> bytes:
    """Write the topic id as a broker does: without a newline at the end."""
    text = base64.urlsafe_b64encode(topic_id).rstrip(b"=")
    return b"version: 0\ntopic_id: " + text


def parse_partition_metadata(content: bytes) -> bytes | CheckpointFault:
    try:
        lines = content.decode("ascii").splitlines()
    except UnicodeDecodeError:
        return CheckpointFault("no text")
    found = [pair for line in lines if (pair := _PAIR.fullmatch(line)) is not None]
    fields = {pair["name"]: pair["value"] for pair in found}
    if not _is_number(fields.get("version", ""), _EPOCH_MAX):
        return CheckpointFault("no version")
    text = fields.get("topic_id", "")
    try:
        topic_id = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        topic_id = b""
    if len(topic_id) != TOPIC_ID_BYTES or not any(topic_id):
        return CheckpointFault(f"no topic id in {text!r}")
    return topic_id


def _format(lines: Iterable[str]) -> bytes:
    rows = list(lines)
    return "".join(f"{row}\n" for row in (_VERSION, str(len(rows)), *rows)).encode("ascii")


def _rows(content: bytes, width: int) -> list[list[str]] | CheckpointFault:
    """Return the fields of each line behind version and count; an empty file has none."""
    try:
        lines = content.decode("ascii").splitlines()
    except UnicodeDecodeError:
        return CheckpointFault("no text")
    if not lines:
        return []
    if lines[0] != _VERSION:
        return CheckpointFault(f"version {lines[0][:40]!r}, expected {_VERSION}")
    if len(lines) == 1 or not _is_number(lines[1], _EPOCH_MAX):
        return CheckpointFault("no count in line 2")
    rows = [line.split() for line in lines[2:]]
    if len(rows) != int(lines[1]):
        return CheckpointFault(f"{len(rows)} lines, its count says {lines[1]}")
    for row in rows:
        if len(row) != width:
            return CheckpointFault(f"{len(row)} fields in {' '.join(row)[:40]!r}, expected {width}")
    return rows


def _is_number(text: str, most: int) -> bool:
    # Python refuses to read numbers of thousands of digits, with an error of its own.
    is_short = len(text) <= _DIGITS_MAX
    return is_short and text.isdecimal() and text.isascii() and int(text) <= most
