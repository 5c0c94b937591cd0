"""
The protocol of stores. The contract suite in `tests/conformance/stores` tests it.

Every call may raise `StoreUnavailable`, `StoreAbsent`, `StoreNotPermitted`, `CredentialsAbsent` and
`StoreUnsuitable`, which concern the whole store, and `InvalidArgument` for an impossible key or
range. A store is used by one thread at a time, and its opener closes it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn, Protocol

from rlmm.base.closing import ClosedByWith
from rlmm.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

    from spark_tiering.stores.content import ContentStream, ObjectContent
    from spark_tiering.stores.results import (
        GetOutcome,
        ListedFolder,
        ListedObject,
        ObjectAbsent,
        ObjectFacts,
        OpenUpload,
        PutOutcome,
        StoreTraits,
    )

KEY_BYTES_MAX = 1024
RESERVED = ".rlmm-"
"""No key begins with this: a folder keeps what is being written under such a name."""

_UNUSABLE = re.compile(r"(^|/)(\.{0,2})(/|$)|[\x00-\x1f\x7f\\]")


class ObjectStore(Protocol):
    def put(self, key: str, content: ObjectContent) -> PutOutcome:
        """Write *content* where nothing is yet; a failing source is refused, and leaves nothing."""

    def put_stream(self, key: str, stream: ContentStream) -> PutOutcome:
        """Put as `put` does, one part in memory; an existing object is compared at the end."""

    def head(self, key: str, *, is_sum_wanted: bool = True) -> ObjectFacts | ObjectAbsent:
        """Look at an object; the checksum is there only where it is wanted and known."""

    def get(self, key: str, first_byte: int, last_byte: int) -> GetOutcome:
        """Return a range, ends inclusive, cut at the end; `InvalidArgument` if upside down."""

    def list(self, prefix: str = "") -> Iterator[ListedObject]:
        """List objects whose keys begin with *prefix*, in an order of the store's own."""

    def level(self, prefix: str = "") -> Iterator[ListedObject | ListedFolder]:
        """List objects and folders right behind *prefix*, each once, in no order."""

    def delete(self, key: str) -> None:
        """Take the object away; one that is not there is no failure."""

    def open_uploads(self, prefix: str = "") -> Iterator[OpenUpload]:
        """List unfinished writes of keys under *prefix*, those at work included."""

    def abort_upload(self, upload: OpenUpload) -> None:
        """End an unfinished write and free its room; one that has ended is no failure."""

    def probe(self, prefix: str) -> StoreTraits:
        """Test the store's real behaviour, with objects under *prefix* that are deleted again."""

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class OpenedStore(ClosedByWith):
    """A store of one process: its settings are pickled, the store is not."""

    def __reduce__(self) -> NoReturn:
        msg = "stores are not sent to other processes: send the settings and open one there"
        raise TypeError(msg)


def check_key(key: str) -> None:
    """Raise `InvalidArgument` for a key that not every store can have as it is."""
    size_bytes = len(key.encode(errors="surrogatepass"))
    if not 0 < size_bytes <= KEY_BYTES_MAX:
        msg = f"a key of {size_bytes} bytes, 1 to {KEY_BYTES_MAX} are possible"
        raise InvalidArgument(msg)
    if _UNUSABLE.search(key) or key.startswith(RESERVED) or not key.isprintable():
        msg = f"no store has the key {key[:300]!r}"
        raise InvalidArgument(msg)


def check_range(first_byte: int, last_byte: int) -> None:
    """Raise `InvalidArgument` for a range that ends before it begins, or begins before 0."""
    if first_byte < 0 or last_byte < first_byte:
        msg = f"bytes {first_byte} to {last_byte}: the end lies before the start"
        raise InvalidArgument(msg)
