"""The store of jobs: names of objects, and objects that are written once, never overwritten."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.errors import InvalidArgument, StoreUnavailable, StoreUnsuitable
from rlmm.metadata.ids import SegmentId, TopicIdPartition
from spark_tiering.job_registry.ids import began_ms
from spark_tiering.layout.object_names import main_key
from spark_tiering.layout.strict_json import JsonFault, plain_values, typed_value
from spark_tiering.stores.content import BytesContent
from spark_tiering.stores.results import (
    ObjectAbsent,
    ObjectArchived,
    ObjectConflict,
    ObjectIdentical,
    ObjectWritten,
    PutRefusal,
    PutRefused,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlmm.metadata.ids import Uuid
    from spark_tiering.stores.protocol import ObjectStore
    from spark_tiering.stores.results import ListedObject

FOLDER: Final = "rlmm-jobs/"
SMALL_BYTES_MAX: Final = 64 * 1024

_R = TypeVar("_R", bound=msgspec.Struct)
_WRITES_MAX: Final = 4
"""Attempts to write an object while the outcome is unknown."""


class JobTopic(NamedTuple):
    """A topic of the cluster; one that was made anew under the same name is another."""

    name: str
    topic_id: Uuid


class JobStore:
    """The objects of jobs below one prefix. As its store, for one thread at a time."""

    def __init__(
        self,
        store: ObjectStore,
        prefix: str = "",
        now_ms: Callable[[], int] = SYSTEM_CLOCK.now_ms,
    ) -> None:
        """*prefix* is put before every key as it is; the store stays the caller's to close."""
        self._store = store
        self._folder = f"{prefix}{FOLDER}"
        self.now_ms = now_ms

    @property
    def jobs_folder(self) -> str:
        return f"{self._folder}jobs/"

    def job_key(self, job_id: str, name: str) -> str:
        """Raise `InvalidArgument` for a text that is no id of a job."""
        if began_ms(job_id) is None:
            msg = f"no job has the id {job_id[:80]!r}"
            raise InvalidArgument(msg)
        return f"{self.jobs_folder}{job_id}/{name}"

    def beat_key(self, job_id: str, number: int) -> str:
        return self.job_key(job_id, f"beats/{number:020d}.json")

    def claims_folder(self, topic: JobTopic) -> str:
        """Return the prefix of a topic's claims; `InvalidArgument` for a name no broker has."""
        return f"{self._folder}claims/{_folder_name(topic)}/"

    def claim_key(self, topic: JobTopic, generation: int) -> str:
        return f"{self.claims_folder(topic)}{generation:020d}.json"

    @property
    def all_windows_folder(self) -> str:
        return f"{self._folder}adopt/"

    def windows_folder(self, topic: JobTopic) -> str:
        return f"{self.all_windows_folder}{_folder_name(topic)}/"

    def window_key(self, topic: JobTopic, generation: int) -> str:
        return f"{self.windows_folder(topic)}{generation:020d}.json"

    def write_once(self, key: str, content: bytes) -> bool:
        """
        Return whether *content* lies under *key*; False where another object was there. Raises
        `StoreUnavailable` and the store's errors: then it may be there, or come to be there.
        """
        for _ in range(_WRITES_MAX):
            outcome = self._store.put(key, BytesContent(content))
            if isinstance(outcome, (ObjectWritten, ObjectIdentical)):
                return True
            if isinstance(outcome, ObjectConflict):
                return False
            if isinstance(outcome, PutRefused):
                _raise_refused(key, outcome)
            # Nobody can say: what lies there now says it, and where nothing does, the same bytes
            # may be sent again, since the first ones can no longer be others.
            there = self.read(key, len(content) + 1)
            if there is not None:
                return there == content
        msg = f"{key}: the store did not tell whether it was written"
        raise StoreUnavailable(msg)

    def read(self, key: str, bytes_max: int = SMALL_BYTES_MAX) -> bytes | None:
        """Return the object, cut to *bytes_max*; `None` where there is none."""
        got = self._store.get(key, 0, bytes_max - 1)
        if isinstance(got, bytes):
            return got
        if isinstance(got, ObjectArchived):
            raise StoreUnsuitable(str(got))
        return None if isinstance(got, ObjectAbsent) else b""

    def is_there(self, key: str) -> bool:
        return not isinstance(self._store.head(key, is_sum_wanted=False), ObjectAbsent)

    def list(self, prefix: str) -> Iterator[ListedObject]:
        return self._store.list(prefix)

    def remove_beat(self, job_id: str, number: int) -> None:
        self._store.delete(self.beat_key(job_id, number))

    def highest(self, folder: str) -> int:
        numbers = (number_of(one.key, folder, ".json") for one in self.list(folder))
        return max((number for number in numbers if number is not None), default=0)


def _folder_name(topic: JobTopic) -> str:
    main_key(SegmentId(TopicIdPartition(topic.topic_id, topic.name, 0), topic.topic_id), 0)
    return f"{topic.name}-{topic.topic_id}"


def number_of(key: str, folder: str, suffix: str) -> int | None:
    """Return the number that an object in *folder* has for its name; `None` for another name."""
    digits = key.removeprefix(folder).removesuffix(suffix)
    if digits.isascii() and digits.isdigit() and key == f"{folder}{digits}{suffix}":
        return int(digits)
    return None


def record_bytes(record: msgspec.Struct) -> bytes:
    """Return *record* as an object of JSON on one line; equal records are equal bytes."""
    line = json.dumps(plain_values(record), separators=(",", ":"), ensure_ascii=False)
    return f"{line}\n".encode()


def read_record(content: bytes | None, of: type[_R]) -> _R | None:
    """Return the record in *content*; `None` for other content, and for none."""
    try:
        return typed_value(read_fields(content), of)
    except JsonFault:
        return None


def read_fields(content: bytes | None) -> dict[str, Any] | None:
    """Return an object of JSON; `None` for other content, and for none."""
    if content is None:
        return None
    try:
        found = json.loads(content)
        # Half a character, which JSON can name, could not be written into the next record.
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _raise_refused(key: str, refused: PutRefused) -> None:
    msg = f"{key} could not be written: {refused}"
    if refused.reason in (PutRefusal.KEY, PutRefusal.TOO_LARGE):
        raise StoreUnsuitable(msg)
    raise StoreUnavailable(msg)
