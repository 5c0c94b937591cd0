"""
The cut of a record value of the usual form into the parts that a handler needs, without decoding.

`cut` recognises minimal varints, no unknown tags, one leader epoch and short custom metadata, and
answers `None` for everything else: then `decode` judges. Where it accepts, `decode` accepts with
the same meaning; a malformed topic name gives a key that no user partition has.
"""

from __future__ import annotations

import struct

from rlmm.metadata.record_layout import API_SEGMENT
from rlmm.metadata.row import ONE_EPOCH, STARTED, STARTED_TXN_EMPTY

_SEGMENT_HEAD = b"\x01\x00\x00"
_UPDATE_HEAD = b"\x01\x01\x00"
_STATE_MAX = 3
_NO_CUSTOM = b"\x00"
_ROW_HEADS = {b"\x00\x00": STARTED, b"\x00\x01\x00\x01\x01": STARTED_TXN_EMPTY}
"""The two common ends of a segment record, with the beginning of the row that says the same."""
_NEGATIVE = b"\x80"
"""Big-endian bytes of negative numbers are not below this."""

# One reader for each length of topic name, because a field that is unpacked costs less than a
# slice. All begin with: head, key of the user partition, tags, segment id, tags. Updates go on with
# writer, length of custom metadata and, where there is none, state and tags. Segments go on with
# start, end, broker, max timestamp, event timestamp, epoch count and, if that is one, the epoch's
# tags and the length of custom metadata.
_KEYS = {length + 1: f">3s{length + 21}s B16sB" for length in range(127)}
_UPDATES = {name: struct.Struct(f"{key} 12sBBB").unpack_from for name, key in _KEYS.items()}
_SEGMENTS = {
    name: struct.Struct(f"{key} 8s8s4s8s8s B12xB 4xB").unpack_from for name, key in _KEYS.items()
}
_EPOCH = struct.Struct(">iqB")  # epoch, its first offset, tags
_BEFORE_ANY_EPOCH = -(2**31) - 1

Start = tuple[bytes, bytes, bytes]
"""Key of the user partition, segment id, row."""
Update = tuple[bytes, bytes, int, bytes, bytes]
"""Key of the user partition, segment id, state, broker id and timestamp, packed custom metadata."""


def cut(value: bytes) -> Start | Update | None:
    """Return the parts of *value* if it has the common form, else `None`. Never raises."""
    try:
        name = value[3]  # length + 1 of the topic name
        if value[1] == API_SEGMENT:
            return _cut_segment(value, name)
        head, key, tags, uuid, more_tags, writer, size, state, last = _UPDATES[name](value)
        custom = _NO_CUSTOM
        if size:
            at = name + 53
            custom = value[at : at + size]
            state, last = value[at + size], value[at + size + 1]
    except (LookupError, struct.error):
        return None  # another name or end, or too short: decode will say what is wrong
    if head != _UPDATE_HEAD or tags or more_tags or last or state > _STATE_MAX or size > 0x7F:
        return None
    if len(value) != name + 55 + (size or 1):
        return None
    return key, uuid, state, writer, custom


def _cut_segment(value: bytes, name: int) -> Start | None:
    (head, key, tags, uuid, more_tags, start, end, broker, max_timestamp, event_timestamp,
     epoch_count, epoch_tags, custom) = _SEGMENTS[name](value)  # fmt: skip
    if epoch_count == ONE_EPOCH:
        custom_at = name + 95
    else:
        custom_at = name + 82 + (epoch_count - 1) * _EPOCH.size
        epoch_tags = epoch_count > 0x7F or not _rising_epochs(value[name + 78 : custom_at - 4])
        custom = value[custom_at]
    stop = custom_at + (custom or 1)
    row_head = _ROW_HEADS[value[stop:]]
    if head != _SEGMENT_HEAD or tags or more_tags or epoch_tags or custom > 0x7F:
        return None
    # The order of big-endian bytes is that of the numbers where these are not negative.
    if not start <= end < _NEGATIVE:
        return None
    rest = value[name + 77 : stop]
    row = b"".join((row_head, broker, event_timestamp, start, end, max_timestamp, rest))
    return key, uuid, row


def _rising_epochs(epochs: bytes) -> bool:
    previous = _BEFORE_ANY_EPOCH
    for epoch, _, tags in _EPOCH.iter_unpack(epochs):
        if tags or epoch <= previous:
            return False
        previous = epoch
    return previous != _BEFORE_ANY_EPOCH
