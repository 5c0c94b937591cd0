"""Record vectors of the package, as frozen values; `docs/conformance.md` describes the file."""

from __future__ import annotations

from importlib import resources
from typing import Any, Literal

from msgspec import UNSET, UnsetType, field

from rlmm.errors import ConfigError
from rlmm_conformance.corpus import parse_json
from rlmm_conformance.fields import FieldError, Form, HexText, Int32, Json, Label, custom_of, read

PACKAGED = "records.json"


class GoldenRecord(Form, frozen=True):
    """A record value with its event: each must give the other."""

    name: Label
    source: Any = field(name="from")
    value_hex: HexText = field(name="value")
    event: dict[str, Any]
    publishable: bool

    @property
    def value(self) -> bytes:
        return bytes.fromhex(self.value_hex)


class DecoderVector(Form, frozen=True):
    """A record value, None being a null value, and its event, or Kafka's error for it."""

    name: Label
    note: Any
    value_hex: HexText | None = field(name="value")
    decoded: dict[str, Any] | UnsetType = field(name="event", default=UNSET)
    error: Label | UnsetType = field(name="undecodable", default=UNSET)

    def __post_init__(self) -> None:
        if (self.decoded is UNSET) == (self.error is UNSET):
            raise ValueError("needs one of 'event' and 'undecodable'")

    @property
    def value(self) -> bytes | None:
        return custom_of(self.value_hex)

    @property
    def event(self) -> dict[str, Any] | None:
        return None if isinstance(self.decoded, UnsetType) else self.decoded

    @property
    def undecodable(self) -> str | None:
        return None if isinstance(self.error, UnsetType) else self.error


class UnpublishableEvent(Form, frozen=True):
    """An event that must never be written to a topic that brokers read."""

    name: Label
    why: Any
    event: dict[str, Any]


class PartitionerVector(Form, frozen=True):
    """A user partition and its metadata partition, or *refused* where the count is no count."""

    topic_hex: HexText = field(name="topic_id")
    partition: Int32
    count: Int32
    metadata_partition: Int32 | None = None
    refused: Any = UNSET

    def __post_init__(self) -> None:
        if (self.metadata_partition is None) == (self.refused is UNSET):
            raise ValueError("needs one of 'metadata_partition' and 'refused'")

    @property
    def topic_id(self) -> bytes:
        return bytes.fromhex(self.topic_hex)

    @property
    def name(self) -> str:
        return f"{self.topic_id.hex()}-{self.partition} of {self.count}"


class RecordVectors(Form, frozen=True):
    format: Literal[1]
    golden: tuple[GoldenRecord, ...]
    tolerance: tuple[DecoderVector, ...]
    unpublishable: tuple[UnpublishableEvent, ...]
    partitioner: tuple[PartitionerVector, ...]


def load_record_vectors() -> RecordVectors:
    text = resources.files("rlmm_conformance.data").joinpath(PACKAGED).read_text("utf-8")
    return parse_record_vectors(PACKAGED, parse_json(PACKAGED, text))


def parse_record_vectors(file: str, content: Json) -> RecordVectors:
    """Read the content of a file of record vectors; raises `ConfigError`."""
    try:
        return read(RecordVectors, content, with_any_text=True)
    except FieldError as error:
        raise ConfigError(f"{file}: {error}") from error
