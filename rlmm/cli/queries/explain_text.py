"""The text of one screen that explains one offset. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlmm.base.time_text import duration_text
from rlmm.cli.common.answer_header import note_lines
from rlmm.cli.printing.cells import epochs_text, size_text, state_text
from rlmm.cli.queries.event_text import time_text, whole_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.views.values import View

EVENTS_SHOWN = 12
COPIES_SHOWN = 3
_SLOTS_SAY = {
    "epoch-unknown": "no segment lists that epoch",
    "nothing-finished": "no copy of that epoch was ever finished",
    "no-slot": "no segment with a slot begins at or before it",
}


def explain_text(document: View) -> Iterator[str]:
    asked: Any = document["asked"]
    explained: Any = document["explained"]
    findings: Any = document["items"]
    yield f"{asked['topic'] or asked['topic_id']}-{asked['partition']}@{asked['offset']} " + (
        _verdict(explained, findings)
    )
    if explained is not None:
        yield ""
        yield from _explained(asked, explained)
    for finding in findings:
        yield ""
        yield from _finding(finding)
    if document["notes"]:
        yield ""
    yield from note_lines(document)


def _verdict(explained: Any, findings: Any) -> str:
    if explained is None:
        return f"cannot be explained: {findings[0]['title']}" if findings else "is not known"
    if explained["is_found"]:
        if explained["is_read"]:
            return "is found, and can be read from the tier"
        return "is found, and is not read from the tier"
    return f"is not found: {findings[0]['title']}" if findings else "is not found"


def _explained(asked: Any, explained: Any) -> Iterator[str]:
    yield _row(
        "partition",
        f"topic id {asked['topic_id']}, metadata partition {explained['metadata_partition']}",
    )
    yield from _segment(explained["segment"])
    yield from _look_ups(explained)
    for one in explained["holding"]:
        if one["segment_id"] != _found_id(explained):
            found = one["found_in_epochs"]
            how = f"found in epoch {', '.join(map(str, found))}" if found else "found by no look-up"
            yield _row("held as well", f"{one['segment_id']}, {state_text(one['state'])}, {how}")
    yield from _objects(explained)
    yield from _retention(explained)
    cluster = explained["cluster"]
    if cluster is not None:
        ends = ", ".join(f"{name} {value}" for name, value in cluster.items() if value is not None)
        yield _row("log", ends or "its ends are not told")
    yield from _history(explained)


def _segment(segment: Any) -> Iterator[str]:
    if segment is None:
        return
    start, last = segment["start_offset"], segment["last_offset"]
    yield _row("segment", f"{segment['segment_id']}, offsets {start} to {last}")
    yield _row(
        "state", f"{segment['state']}, {size_text(segment['size_bytes'])}, "
        f"epochs {epochs_text(segment['epochs'])}",
    )  # fmt: skip
    yield _row("newest record", segment["max_timestamp"] or "not said")


def _look_ups(explained: Any) -> Iterator[str]:
    look_up = explained["look_up"]
    if look_up is None:
        yield _row("look-up", "no leader epoch is known")
        return
    origin = "as asked" if explained["is_epoch_said"] else "as the segments tell"
    yield _row("look-up", f"in leader epoch {look_up['epoch']} ({origin}): {_way(look_up)}")
    stock = look_up["stock_broker_finds"]
    if look_up["segment_id"] is not None:
        yield _row(
            "stock broker",
            "finds the same" if stock is not None else "finds nothing: it goes by the slot alone",
        )
    for other in explained["other_epochs"]:
        yield _row("", f"in leader epoch {other['epoch']}: segment {other['segment_id']}")


def _way(look_up: Any) -> str:
    slot, says = look_up["slot_offset"], look_up["slots_say"]
    if look_up["rule"] == "slot":
        return f"the slot at {slot} has it"
    if says == "above-highest":
        why = f"finished copies of it reach {look_up['highest_offset']}"
    elif says == "slot-ends-before":
        why = (
            f"the slot at {slot} has segment {look_up['slot_segment_id']}, which ends there at "
            f"{look_up['slot_last_offset']}"
        )
    else:
        why = _SLOTS_SAY.get(says, says)
    if look_up["rule"] == "cover-lookup":
        return f"{why}; the rule cover-lookup finds {look_up['segment_id']}"
    return f"nothing: {why}"


def _objects(explained: Any) -> Iterator[str]:
    objects, checked = explained["objects"], explained["checked"]
    for name, key in (objects or {}).items():
        yield _row(name, key)
        seen = None if checked is None else checked["objects"][name]
        if checked is not None:
            yield _row("", "not there" if seen is None else _seen(seen))
    if checked is not None:
        yield _row("objects are", checked["found"])


def _seen(seen: Any) -> str:
    sums = seen["crc64nvme"]
    return f"{seen['size_bytes']:,} bytes, " + (
        f"CRC-64/NVME {sums}" if sums else "the store tells no checksum"
    )


def _retention(explained: Any) -> Iterator[str]:
    retention = explained["retention"]
    if retention is None:
        return
    before, unknown = retention["segments_before"], retention["unknown"]
    said = [str(retention["fate"]) + (", as far as is known" if unknown else "")]
    if retention["due"] is not None:
        limit = duration_text(retention["retention_ms"] / 1_000)
        said.append(f"by time (retention.ms is {limit}) from {retention['due']} on")
    if before and retention["fate"] == "stays":
        said.append(f"and after {before} that {'is' if before == 1 else 'are'} older")
    yield _row("retention", ", ".join(said))
    if unknown:
        yield _row("", f"not known: {', '.join(unknown)}")


def _history(explained: Any) -> Iterator[str]:
    history = explained["history"]
    if history is None:
        return
    copies = sorted(history["copies"], key=lambda copy: copy["segment_id"] == _found_id(explained))
    for copy in copies[-COPIES_SHOWN:]:
        gone = "" if copy["is_there"] else ", gone"
        yield _row(
            "copy", f"{copy['segment_id']}, {copy['start_offset']} to {copy['last_offset']}{gone}"
        )
        events = copy["events"]
        for event in events[:EVENTS_SHOWN]:
            yield _row("", f"{time_text(event)}  {event['offset']}  {whole_text(event)}")
        left_out = copy["events_left_out"] + max(0, len(events) - EVENTS_SHOWN)
        if left_out:
            yield _row("", f"and {left_out} more, see rlmm history {copy['segment_id']}")
    if len(copies) > COPIES_SHOWN:
        yield _row("", f"and {len(copies) - COPIES_SHOWN} copies more held it, or do")
    for event in history["deletion"]:
        state = state_text(str(event["state"]))
        yield _row("deletion", f"{time_text(event)}  {state} by broker {event['broker_id']}")


def _found_id(explained: Any) -> object:
    return None if explained["segment"] is None else explained["segment"]["segment_id"]


def _finding(finding: Any) -> Iterator[str]:
    yield f"{finding['severity'].upper()} {finding['code']}: {finding['title']}"
    yield f"  {finding['detail']}"
    yield f"  why: {finding['reason']}"
    yield f"  fix: {finding['fix']}"


def _row(name: str, value: object) -> str:
    return f"{name:<14}  {value}"
