"""
The golden records, decoder vectors and partitioner vectors that are carried with the package, as
frozen values.

The file is data for any language; its form is described in `docs/conformance.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, TypeVar

from rlmm.errors import ConfigError
from rlmm_conformance.corpus import parse_json
from rlmm_conformance.fields import (
    FieldError,
    Json,
    flag_of,
    hex_of,
    int32_of,
    list_of,
    object_of,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGED = "records.json"
FORMAT = 1

Entry = TypeVar("Entry")

_SECTIONS = ("format", "golden", "tolerance", "unpublishable", "partitioner")


@dataclass(frozen=True, slots=True)
class GoldenRecord:
    """A record value with its event: each must give the other."""

    name: str
    value: bytes
    event: dict[str, Json]
    publishable: bool


@dataclass(frozen=True, slots=True)
class DecoderVector:
    """A record value, None being a null value, and what reading it gives."""

    name: str
    value: bytes | None
    event: dict[str, Json] | None
    undecodable: str | None
    """The kind of error with which Kafka's decoder answers; None when it accepts the value."""


@dataclass(frozen=True, slots=True)
class UnpublishableEvent:
    """An event that must never be written to a topic that brokers read."""

    name: str
    event: dict[str, Json]


@dataclass(frozen=True, slots=True)
class PartitionerVector:
    """A user partition and the metadata partition that holds it."""

    topic_id: bytes
    partition: int
    count: int
    metadata_partition: int | None
    """None when the count is to be refused."""

    @property
    def name(self) -> str:
        return f"{self.topic_id.hex()}-{self.partition} of {self.count}"


@dataclass(frozen=True, slots=True)
class RecordVectors:
    """The whole file."""

    golden: tuple[GoldenRecord, ...]
    tolerance: tuple[DecoderVector, ...]
    unpublishable: tuple[UnpublishableEvent, ...]
    partitioner: tuple[PartitionerVector, ...]


def load_record_vectors() -> RecordVectors:
    """The vectors that are carried with the package."""
    text = resources.files("rlmm_conformance.data").joinpath(PACKAGED).read_text("utf-8")
    return parse_record_vectors(PACKAGED, parse_json(PACKAGED, text))


def parse_record_vectors(file: str, content: Json) -> RecordVectors:
    """Read the content of a file of record vectors; raises `ConfigError`."""
    try:
        sections = object_of("file", content, _SECTIONS)
    except FieldError as error:
        raise ConfigError(f"{file}: {error}") from error
    if sections["format"] != FORMAT:
        raise ConfigError(f"{file}: 'format' must be {FORMAT}, found {sections['format']!r}")
    return RecordVectors(
        golden=_section(file, sections, "golden", _golden),
        tolerance=_section(file, sections, "tolerance", _decoder_vector),
        unpublishable=_section(file, sections, "unpublishable", _unpublishable),
        partitioner=_section(file, sections, "partitioner", _partitioner),
    )


def _section(
    file: str, sections: dict[str, Json], name: str, read: Callable[[Json], Entry]
) -> tuple[Entry, ...]:
    where = f"{file}: {name}"
    try:
        entries = []
        for number, entry in enumerate(list_of(name, sections[name]), start=1):
            where = f"{file}: {name} {number}"
            entries.append(read(entry))
    except FieldError as error:
        raise ConfigError(f"{where}: {error}") from error
    return tuple(entries)


def _golden(entry: Json) -> GoldenRecord:
    fields = object_of("entry", entry, ("name", "from", "value", "event", "publishable"))
    return GoldenRecord(
        name=text_of("name", fields["name"]),
        value=hex_of("value", fields["value"]),
        event=_event(fields["event"]),
        publishable=flag_of("publishable", fields["publishable"]),
    )


def _decoder_vector(entry: Json) -> DecoderVector:
    is_accepted = isinstance(entry, dict) and "event" in entry
    outcome = "event" if is_accepted else "undecodable"
    fields = object_of("entry", entry, ("name", "note", "value", outcome))
    return DecoderVector(
        name=text_of("name", fields["name"]),
        value=None if fields["value"] is None else hex_of("value", fields["value"]),
        event=_event(fields["event"]) if is_accepted else None,
        undecodable=None if is_accepted else text_of("undecodable", fields["undecodable"]),
    )


def _unpublishable(entry: Json) -> UnpublishableEvent:
    fields = object_of("entry", entry, ("name", "why", "event"))
    return UnpublishableEvent(text_of("name", fields["name"]), _event(fields["event"]))


def _partitioner(entry: Json) -> PartitionerVector:
    is_refused = isinstance(entry, dict) and "refused" in entry
    outcome = "refused" if is_refused else "metadata_partition"
    fields = object_of("entry", entry, ("topic_id", "partition", "count", outcome))
    return PartitionerVector(
        topic_id=hex_of("topic_id", fields["topic_id"]),
        partition=int32_of("partition", fields["partition"]),
        count=int32_of("count", fields["count"]),
        metadata_partition=None if is_refused else int32_of(outcome, fields[outcome]),
    )


def _event(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise FieldError("'event' must be an object")
    return value
