"""Events of the metadata topic in words: one line each, for people. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.cli.printing.answer import Column, ValueFormat
from rlmm.cli.printing.cells import NOTHING, partition_label, state_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.views.values import View

HEX_SHOWN = 64
"""Bytes of a record that people are shown in hex, eight at a time; programs get more."""


def time_text(item: View) -> str:
    said = item["timestamp"]
    return f"{said[:19]}Z" if isinstance(said, str) else NOTHING


def event_text(item: View) -> str:
    """Return the event as text: COPY_STARTED 0-99 of 1 epoch, by broker 1."""
    state = item["state"]
    if not isinstance(state, str):
        lost = item["next_offset"] - item["offset"]
        return "unreadable" if lost == 1 else f"{lost} offsets lost"
    said = f"{'snapshot ' if item['kind'] == 'snapshot' else ''}{state_text(state)}"
    if item["kind"] == "partition-delete":
        said = f"partition {said}"
    if item["start_offset"] is not None:
        said += f" {item['start_offset']}-{item['last_offset']}"
    return f"{said} by {item['broker_id']}"


def outcome_text(item: View) -> str:
    verdict, why = item["verdict"], item["reason"]
    parts = [] if verdict in {None, "applied"} else [str(verdict)]
    if why is not None and not (item.get("displaced") and why == "displaced-another-segment"):
        parts.append(str(why) if verdict != "applied" else f"applied, but {why}")
    said, detail = ": ".join(parts), str(item["detail"])
    if verdict == "rejected":  # what was asked for the event itself says
        detail = f"it was {state_text(detail.partition(' -> ')[0])}"
    if detail:
        said += f" ({detail})"
    value = item["value_hex"]
    if isinstance(value, str):
        more = " ..." if len(value) > 2 * HEX_SHOWN else ""
        said += f" hex {bytes.fromhex(value)[:HEX_SHOWN].hex(' ', -8)}{more}"
    return said


def whole_text(item: View) -> str:
    outcome, effects = outcome_text(item), "".join(_effects(item))
    return event_text(item) + (f": {outcome}" if outcome else "") + effects


def _effects(item: View) -> Iterator[str]:
    displaced = item.get("displaced")
    if isinstance(displaced, list) and displaced:
        named = ", ".join(
            f"of {one['segment_id']} in epoch {', '.join(map(str, one['epochs']))}"
            for one in displaced
        )
        yield f", takes the place {named}"
    match item.get("part"):
        case "displaced":
            yield f" [segment {item['segment_id']}]"
        case "partition-deleted":
            yield " [the whole partition]"
        case "mentioned":
            yield " [named in these bytes]"


def partition_or_nothing(item: View) -> str:
    return NOTHING if item["topic"] is None else partition_label(item)


def segment_and_event(item: View) -> str:
    segment = item["segment_id"]
    return whole_text(item) if segment is None else f"{segment} {whole_text(item)}"


EXTRAS = (
    Column("metadata_partition", "METADATA", ValueFormat.NUMBER, is_extra=True),
    Column("next_offset", "NEXT", ValueFormat.NUMBER, is_extra=True),
    Column("timestamp_ms", "RECORD TIME", ValueFormat.TIME, is_extra=True),
    Column("event_timestamp_ms", "EVENT TIME", ValueFormat.TIME, is_extra=True),
    Column("kind", "KIND", is_extra=True),
    Column("state", "STATE", ValueFormat.STATE, is_extra=True),
    Column("topic_id", "TOPIC ID", is_extra=True),
    Column("topic", "TOPIC", is_extra=True),
    Column("partition", "P", ValueFormat.NUMBER, is_extra=True),
    Column("segment_id", "SEGMENT ID", is_extra=True),
    Column("broker_id", "BROKER", ValueFormat.NUMBER, is_extra=True),
    Column("start_offset", "START", ValueFormat.NUMBER, is_extra=True),
    Column("last_offset", "LAST", ValueFormat.NUMBER, is_extra=True),
    Column("epochs", "EPOCHS", ValueFormat.EPOCHS, is_extra=True),
    Column("size_bytes", "SIZE", ValueFormat.SIZE, is_extra=True),
    Column("custom_metadata", "CUSTOM", is_extra=True),
    Column("verdict", "VERDICT", is_extra=True),
    Column("reason", "REASON", is_extra=True),
    Column("detail", "DETAIL", is_extra=True),
    Column("value_hex", "HEX", is_extra=True),
)
