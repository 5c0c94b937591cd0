"""The methods of the protocol, as data: roles, arguments, answers, whether they may be repeated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from rlmm.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Role = Literal["any", "reader", "broker", "admin"]


@dataclass(frozen=True, slots=True)
class Method:
    name: str
    role: Role
    """The least role that may call it; "any" needs none."""
    args: tuple[str, ...]
    """Name and form of each argument that must be there."""
    options: str | None
    """The options that may follow as a map: of a read, of a write, of a wait; or none may."""
    result: str
    meaning: str
    is_write: bool = False
    is_safe_to_repeat: bool = True
    """Whether a client may send it again after a lost answer."""

    def require_count(self, args: Sequence[object]) -> None:
        least = len(self.args)
        most = least + (self.options is not None)
        if not least <= len(args) <= most:
            count = str(least) if least == most else f"{least} or {most}"
            names = ", ".join(arg.split(":")[0] for arg in self.args) or "none"
            if self.options is not None:
                names += ", options"
            msg = f"{self.name} takes {count} arguments ({names}), got {len(args)}"
            raise InvalidArgument(msg)


def _read(name: str, args: tuple[str, ...], result: str, meaning: str) -> Method:
    return Method(name, "reader", args, "read", result, meaning)


def _write(name: str, args: tuple[str, ...], meaning: str) -> Method:
    return Method(
        name, "broker", args, "write", "written", meaning, is_write=True, is_safe_to_repeat=False
    )


_PARTITION: Final = "partition: partition"
_EPOCH: Final = "epoch: uint31"
_OFFSET: Final = "offset: uint63"
_SEGMENT_ID: Final = "segment id: bin 16"
_BROKER: Final = "broker id: int32"
_EVENT_TIME: Final = "event timestamp ms: int64"
_CUSTOM: Final = "custom metadata: bin or nil"
_AFTER: Final = "after: bin or nil"
_LIMIT: Final = "limit: uint31"
_PLACE: Final = "metadata partition: uint31"
_BYTES: Final = "bytes: uint31"

_ALL: Final = (
    Method(
        "hello", "any", ("hello: map",), None, "map",
        "The first request of a connection: version, credentials, who is asking; see below.",
    ),
    Method("ping", "reader", (), None, "nil", "Nothing; keeps an idle connection open."),
    _write(
        "add_segment", (_PARTITION, "segment: segment"),
        "A copy of a segment starts: its state must be 0.",
    ),
    _write(
        "update_segment",
        (_PARTITION, _SEGMENT_ID, _BROKER, _EVENT_TIME, _CUSTOM, "state: 1-3"),
        "A known segment moves on to another state.",
    ),
    _write(
        "put_partition_delete", (_PARTITION, _BROKER, _EVENT_TIME, "state: 0-2"),
        "The deletion of a whole user partition moves on to another state.",
    ),
    _read(
        "segment", (_PARTITION, _SEGMENT_ID), "segment or nil",
        "The segment, in whatever state, unless its deletion is finished.",
    ),
    _read(
        "segment_for", (_PARTITION, _EPOCH, _OFFSET), "segment or nil",
        "The finished segment that holds the offset of the leader epoch.",
    ),
    _read(
        "segments_for", ("look-ups: array of [partition, epoch, offset]",),
        "array of [error or nil, segment or nil]",
        "`segment_for`, many at once: an answer to each look-up, in their order.",
    ),
    _read(
        "highest_offset", (_PARTITION, _EPOCH), "uint63 or nil",
        "The largest offset of the leader epoch that any finished copy reached.",
    ),
    _read(
        "next_segment_with_txn_index", (_PARTITION, _EPOCH, _OFFSET), "segment or nil",
        "The first finished segment of the leader epoch from the offset on, without a gap, that "
        "may have a transaction index.",
    ),
    _read(
        "list_segments", (_PARTITION, _AFTER, _LIMIT), "[array of segment, bin or nil]",
        "A page of all segments, in whatever state, by rising start offset, then by id.",
    ),
    _read(
        "list_segments_by_epoch", (_PARTITION, _EPOCH, _AFTER, _LIMIT),
        "[array of segment, bin or nil]",
        "A page of the segments that list the leader epoch, in the same order.",
    ),
    _read(
        "remote_log_size", (_PARTITION, "epoch: uint31 or nil"), "uint",
        "Bytes of all segments that list the leader epoch; nil: of all segments.",
    ),
    _read(
        "partition_delete", (_PARTITION,), "[broker id, event timestamp ms, state] or nil",
        "The last event of the user partition's own deletion.",
    ),
    Method(
        "is_ready", "reader", (_PARTITION,), None, "bool",
        "Whether questions about the partition are answered now.",
    ),
    Method(
        "wait_ready", "reader", (_PARTITION,), "wait", "nil",
        "Answered as soon as questions about the partition are.",
    ),
    Method(
        "assign", "broker",
        ("leaders: array of partition", "followers: array of partition", "complete: bool"), None,
        "generation: uint63",
        "What this broker leads and follows; complete: this is all it has, else it is added.",
    ),
    Method(
        "stop_partitions", "broker", ("partitions: array of partition",), None,
        "generation: uint63",
        "This broker no longer has these partitions.",
    ),
    Method(
        "read_token", "reader", (), None, "map of metadata partition to offset",
        "How far was read here: what `at_least` takes, here or at another service of the cluster.",
    ),
    Method(
        "status", "reader", (), None, "map",
        "How the service stands; for people. Ages are whole ms.",
    ),
    Method(
        "list_partitions", "reader", (_PLACE, _AFTER, _LIMIT), None,
        "[position, is whole, array of user partition in figures, bin or nil]",
        "A page of the user partitions whose events live on the metadata partition.",
    ),
    Method(
        "open_image", "reader", (_PARTITION, _BYTES), None, "[position, size, bin]",
        "The state image of a user partition as it is now, and its first bytes.",
    ),
    Method(
        "read_image", "reader", (_OFFSET, _BYTES), None, "bin",
        "Bytes of the image that this connection has open, from the offset on.",
    ),
    Method("close_image", "reader", (), None, "nil", "The open image is let go of, if any is."),
    Method(
        "log_bounds", "admin", ("metadata partitions: array of uint31",), None,
        "[topic id, array of [error or nil, log start, next offset]]",
        "What the log holds of these metadata partitions, asked of it freshly, in their order.",
    ),
    Method(
        "read_log", "admin", ("topic id: bin 16", _PLACE, _OFFSET, "skip: uint63", _BYTES), "wait",
        "[bin, next offset, bytes left] or nil",
        "Record batches of a metadata partition from the offset on, as the log has them.",
    ),
)  # fmt: skip

METHODS: Final[Mapping[str, Method]] = {method.name: method for method in _ALL}
