"""A store in memory whose next calls can be made to fail."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from spark_tiering.stores.content import BytesContent, sum_of
from spark_tiering.stores.results import (
    ListedFolder,
    ListedObject,
    ObjectAbsent,
    ObjectConflict,
    ObjectFacts,
    ObjectIdentical,
    ObjectWritten,
    PutUnknown,
    RangeBeyondObject,
    StoreTraits,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from spark_tiering.stores.content import ContentStream, ObjectContent
    from spark_tiering.stores.results import GetOutcome, OpenUpload, PutOutcome

NOW_MS = 1_700_000_000_000


class MemoryStore:
    """Keeps the contract of `ObjectStore`; *before* gets each call and key, and may raise."""

    def __init__(
        self,
        objects: dict[str, bytes] | None = None,
        before: Callable[[str, str], None] = lambda name, key: None,
    ) -> None:
        self.objects = {} if objects is None else objects
        self.before = before
        self.calls: list[tuple[str, str]] = []
        self.next_puts: deque[str] = deque()
        """The outcomes of the next puts: `landed` and `lost` are unknown, `fine` is no failure."""
        self.modified_ms: dict[str, int] = {}
        self.storage_classes: dict[str, str] = {}
        self.uploads: list[OpenUpload] = []

    def _begin(self, name: str, key: str) -> None:
        self.before(name, key)
        self.calls.append((name, key))

    def put(self, key: str, content: ObjectContent) -> PutOutcome:
        self._begin("put", key)
        said = self.next_puts.popleft() if self.next_puts else "fine"
        if said == "lost":
            return PutUnknown("no answer came")
        body = b"".join(bytes(piece) for piece in content.pieces())
        there = self.objects.setdefault(key, body)
        if said == "landed":
            return PutUnknown("no answer came")
        if there is body:
            return ObjectWritten(*content.sum)
        return (
            ObjectIdentical(self._facts(key))
            if there == body
            else ObjectConflict(self._facts(key), key)
        )

    def put_stream(self, key: str, stream: ContentStream) -> PutOutcome:
        return self.put(key, BytesContent(b"".join(bytes(piece) for piece in stream.pieces)))

    def head(self, key: str, *, is_sum_wanted: bool = True) -> ObjectFacts | ObjectAbsent:
        self._begin("head", key)
        return self._facts(key) if key in self.objects else ObjectAbsent(key)

    def get(self, key: str, first_byte: int, last_byte: int) -> GetOutcome:
        self._begin("get", key)
        if key not in self.objects:
            return ObjectAbsent(key)
        found = self.objects[key][first_byte : last_byte + 1]
        return found or RangeBeyondObject(key, first_byte)

    def list(self, prefix: str = "") -> Iterator[ListedObject]:
        self._begin("list", prefix)
        for key in sorted(self.objects):
            if key.startswith(prefix):
                yield self._listed(key)

    def level(self, prefix: str = "") -> Iterator[ListedObject | ListedFolder]:
        self._begin("level", prefix)
        folders = set()
        for key in sorted(self.objects):
            name, is_deeper, _ = key.removeprefix(prefix).partition("/")
            if key.startswith(prefix) and not is_deeper:
                yield self._listed(key)
            elif key.startswith(prefix):
                folders.add(f"{prefix}{name}/")
        yield from map(ListedFolder, sorted(folders))

    def delete(self, key: str) -> None:
        self._begin("delete", key)
        self.objects.pop(key, None)

    def open_uploads(self, prefix: str = "") -> Iterator[OpenUpload]:
        return (one for one in self.uploads if one.key.startswith(prefix))

    def abort_upload(self, upload: OpenUpload) -> None: ...

    def probe(self, prefix: str) -> StoreTraits:
        return StoreTraits(True, True, True, True)

    def close(self) -> None: ...

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _listed(self, key: str) -> ListedObject:
        modified_ms = self.modified_ms.get(key, NOW_MS)
        return ListedObject(
            key, len(self.objects[key]), modified_ms, self.storage_classes.get(key, "")
        )

    def _facts(self, key: str) -> ObjectFacts:
        size_bytes, crc64nvme = sum_of([self.objects[key]])
        return ObjectFacts(size_bytes, crc64nvme, self.modified_ms.get(key, NOW_MS))
