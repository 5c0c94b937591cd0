"""
A plan's token: its name, short enough for a file's name or a scheduler's variable. Pure.

    rlmm-plan-1.<base64url>     msgpack, behind it the first bytes of its SHA-256

It holds positions, ends, missing ranges, a short question, and a digest of the plan, so a later
plan, or the same plan again, can be made from it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgpack

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX, INT64_MAX, TopicIdPartition, Uuid
from spark_tiering.read_plan.plan import PlanSourceKind

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "rlmm-plan-1."
TOKEN_CHARACTERS_MAX = 1 << 20
"""Some 50,000 partitions fit."""
QUESTION_BYTES_MAX = 2_048
"""A longer question, or more facts, is in the plan alone; the token has its digest."""
SUM_BYTES = 6
DIGEST_BYTES = 8

_FORM = re.compile(rf"{re.escape(PREFIX)}[A-Za-z0-9_-]+")
_KINDS = tuple(PlanSourceKind)


@dataclass(frozen=True, slots=True)
class PlanPosition:
    next_offset: int | None
    gaps: tuple[tuple[int, int], ...] = ()
    """What it lacked below, as [first offset, next offset), rising."""
    floor: int | None = None
    """Where it began, if that was to be where the tier begins: segments tiered below are new."""


@dataclass(frozen=True, slots=True)
class PlanToken:
    kind: PlanSourceKind
    cluster_id: str
    metadata_topic_id: Uuid | None
    partition_count: int | None
    positions: Mapping[int, int]
    asked_digest: bytes
    asked: bytes | None
    content_digest: bytes
    reached: Mapping[TopicIdPartition, PlanPosition] = field(default_factory=dict)

    def __str__(self) -> str:
        packed = msgpack.packb(self._values(), use_bin_type=True)
        content = packed + hashlib.sha256(packed).digest()[:SUM_BYTES]
        text = PREFIX + base64.urlsafe_b64encode(content).rstrip(b"=").decode()
        if len(text) > TOKEN_CHARACTERS_MAX:
            msg = (
                f"{len(self.reached)} partitions make a token of {len(text)} characters, at most "
                f"{TOKEN_CHARACTERS_MAX}: plan fewer topics at once"
            )
            raise InvalidArgument(msg)
        return text

    def _values(self) -> list[Any]:
        topics: dict[tuple[str, Uuid], list[Any]] = {}
        for partition, one in self.reached.items():
            rows = topics.setdefault((partition.topic, partition.topic_id), [])
            flat = [offset for gap in one.gaps for offset in gap]
            rows.append([partition.partition, one.next_offset, one.floor, flat])
        return [
            _KINDS.index(self.kind),
            self.cluster_id,
            None if self.metadata_topic_id is None else bytes(self.metadata_topic_id),
            self.partition_count,
            [list(pair) for pair in sorted(self.positions.items())],
            self.asked_digest,
            self.asked,
            self.content_digest,
            [[topic, bytes(topic_id), rows] for (topic, topic_id), rows in topics.items()],
        ]


def parse_token(text: str) -> PlanToken:
    """Return the token; raises `InvalidArgument` for a text that is none, or was changed."""
    said = text.strip()
    if len(said) > TOKEN_CHARACTERS_MAX or _FORM.fullmatch(said) is None:
        msg = f"{said[:60]!r} is no token of a plan: these begin with {PREFIX}"
        raise InvalidArgument(msg)
    body = said.removeprefix(PREFIX)
    try:
        content = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
    except ValueError as error:
        raise _damaged(said, "it is cut") from error
    packed = content[:-SUM_BYTES]
    if hashlib.sha256(packed).digest()[:SUM_BYTES] != content[-SUM_BYTES:]:
        raise _damaged(said, "its sum differs")
    try:
        values = msgpack.unpackb(packed, raw=False, strict_map_key=True)
        token = _token(values)
        canonical = str(token) == said
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise _damaged(said, str(error) or type(error).__name__) from error
    except InvalidArgument as error:
        raise _damaged(said, str(error)) from error
    if not canonical:
        raise _damaged(said, "it is not in the form that is written")
    return token


def _damaged(said: str, why: str) -> InvalidArgument:
    shown = said if len(said) <= 60 else f"{said[:57]}..."
    return InvalidArgument(f"{shown!r} is no token of a plan, or not all of it: {why[:200]}")


def _token(values: Any) -> PlanToken:
    kind, cluster_id, topic_id, count, positions, asked_digest, asked, digest, topics = values
    _require(type(kind) is int and 0 <= kind < len(_KINDS), "source")
    _require(isinstance(cluster_id, str), "cluster id")
    _require(count is None or _is_number(count, INT32_MAX), "number of partitions")
    _require(isinstance(asked_digest, bytes) and len(asked_digest) == DIGEST_BYTES, "digest")
    _require(isinstance(digest, bytes) and len(digest) == DIGEST_BYTES, "digest")
    _require(asked is None or isinstance(asked, bytes), "question")
    at = {}
    for place, position in positions:
        _require(_is_number(place, INT32_MAX) and _is_number(position), "positions")
        at[place] = position
    reached: dict[TopicIdPartition, PlanPosition] = {}
    for topic, of, rows in topics:
        for number, next_offset, floor, flat in rows:
            _require(_is_number(number, INT32_MAX), "partition")
            _require(next_offset is None or _is_number(next_offset), "next offset")
            _require(floor is None or _is_number(floor), "beginning")
            partition = TopicIdPartition(Uuid(of), topic, number)
            reached[partition] = PlanPosition(next_offset, _gaps(flat, floor, next_offset), floor)
    return PlanToken(
        _KINDS[kind],
        cluster_id,
        None if topic_id is None else Uuid(topic_id),
        count,
        at,
        asked_digest,
        asked,
        digest,
        reached,
    )


def _gaps(flat: Any, floor: int | None, next_offset: int | None) -> tuple[tuple[int, int], ...]:
    _require(isinstance(flat, list) and all(_is_number(one) for one in flat), "gaps")
    _require(flat == sorted(set(flat)) and len(flat) % 2 == 0, "gaps")
    whole = [] if floor is None else [floor]
    whole += flat + ([] if next_offset is None else [next_offset])
    _require(whole == sorted(whole) and (next_offset is not None or not whole), "gaps")
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def _is_number(value: object, most: int = INT64_MAX) -> bool:
    return type(value) is int and 0 <= value <= most


def _require(is_so: bool, what: str) -> None:
    if not is_so:
        msg = f"{what}: not what it can be"
        raise ValueError(msg)
