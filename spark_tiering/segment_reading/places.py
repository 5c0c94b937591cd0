"""
The places where a segment's objects may lie, as keys; a changed prefix moves no object. Pure.

First comes the prefix in the segment's own metadata, then today's, then older ones. The prefix that
had a manifest is tried first for the next segment, so a change costs one wasted request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from spark_tiering.layout.custom_metadata import CustomMetadata, parse_custom_metadata
from spark_tiering.layout.object_names import ObjectKind, main_key, parse_object_key
from spark_tiering.segment_reading.faults import ReadFault, SegmentUnreadable
from spark_tiering.stores.protocol import check_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.metadata.ids import SegmentId

Keys = dict[ObjectKind, str]


class KeyPlaces:
    """Lists the prefixes of objects: first that of today, then older ones."""

    def __init__(self, prefixes: Sequence[str] = ("",)) -> None:
        self._prefixes = list(dict.fromkeys(prefixes)) or [""]

    @property
    def count(self) -> int:
        return len(self._prefixes)

    def candidates(
        self, segment_id: SegmentId, start_offset: int, custom_metadata: bytes | None = None
    ) -> list[Keys]:
        """Return the keys of all objects, likeliest first; `SegmentUnreadable` for none."""
        try:
            main = main_key(segment_id, start_offset)
            named = [f"{prefix}{main}" for prefix in self._prefixes]
            custom = parse_custom_metadata(custom_metadata)
            own: list[str] = []
            if isinstance(custom, CustomMetadata) and _names_a_place(custom):
                prefixes = self._prefixes if custom.prefix is None else [custom.prefix]
                own = [f"{prefix}{custom.main_key or main}" for prefix in prefixes]
            # Where their prefix is known, log and indexes are nowhere else.
            content = own[0] if len(own) == 1 else None
            found = [_keys(content or one, one) for one in dict.fromkeys([*own, *named])]
            for keys in found:
                for key in keys.values():
                    check_key(key)
        except InvalidArgument as error:
            where = str(segment_id.uuid)
            raise SegmentUnreadable(ReadFault.MISMATCH, where, str(error)[:400]) from error
        return found

    def found(self, keys: Keys) -> None:
        for prefix in self._prefixes:
            if parse_object_key(keys[ObjectKind.MANIFEST], prefix) is not None:
                self._prefixes.remove(prefix)
                self._prefixes.insert(0, prefix)
                return


def _keys(content: str, manifest: str) -> Keys:
    return {
        kind: f"{manifest if kind is ObjectKind.MANIFEST else content}.{kind}"
        for kind in ObjectKind
    }


def _names_a_place(custom: CustomMetadata) -> bool:
    return custom.prefix is not None or custom.main_key is not None
