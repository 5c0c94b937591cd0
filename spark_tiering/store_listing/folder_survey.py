"""The survey of a store's folders, so that many units can list them at once. A few requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from spark_tiering.store_listing.key_names import OtherKey
from spark_tiering.store_listing.manifests import read_topic_folder
from spark_tiering.stores.results import ListedFolder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from spark_tiering.store_listing.listing_tasks import SortRules
    from spark_tiering.stores.protocol import ObjectStore
    from spark_tiering.stores.results import ListedObject

UNKNOWN_OBJECTS: Final = 10_000
"""As many are reckoned with where nothing is known."""


class FolderToList(NamedTuple):
    prefix: int
    folder: str
    objects: int


class FolderSurvey:
    """
    Goes through the uppermost folders of every prefix. Topics of which more than *large* objects
    are *expected*, or unknown, are split by their content.
    """

    def __init__(
        self, store: ObjectStore, sorting: SortRules, expected: Mapping[str, int], large: int
    ) -> None:
        self._store = store
        self._sorting = sorting
        self._expected = expected
        self._large = large

    def found(self) -> Iterator[FolderToList | ListedObject]:
        for number, prefix in enumerate(self._sorting.prefixes.all):
            yield from self._below(number, prefix)

    def _below(self, number: int, folder: str) -> Iterator[FolderToList | ListedObject]:
        for one in self._store.level(folder):
            if not isinstance(one, ListedFolder):
                if self._sorting.prefixes.owner(one.key) == number:
                    yield one
            elif not self._is_left_out(number, one.key):
                yield from self._folder(number, one.key, is_parted=folder == self._prefix(number))

    def _folder(
        self, number: int, key: str, *, is_parted: bool
    ) -> Iterator[FolderToList | ListedObject]:
        expected = self._expected.get(key)
        is_topic = read_topic_folder(key, self._prefix(number)) is not None
        is_large = is_topic and (expected is None or expected > self._large)
        holds_prefix = any(one.startswith(key) for one in self._sorting.prefixes.all)
        if holds_prefix or (is_parted and is_large):
            yield from self._below(number, key)
        else:
            yield FolderToList(number, key, UNKNOWN_OBJECTS if expected is None else expected)

    def _is_left_out(self, number: int, key: str) -> bool:
        prefixes = self._sorting.prefixes
        if key in prefixes.all or prefixes.read(f"{key}x") is OtherKey.JOBS:
            return True
        found = read_topic_folder(key, self._prefix(number))
        return found is not None and not self._sorting.topics.wants_topic(found.topic)

    def _prefix(self, number: int) -> str:
        return self._sorting.prefixes.all[number]
