"""The types of answers, and the JSON schemas that are generated from them. Pure."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from rlmm.broker_files.views import BrokerFilesView, BrokerPartitionsView
from rlmm.views.generated_schemas import components_of
from rlmm.views.readiness import LivenessView, ReadinessView
from rlmm.views.segment import PartitionDeleteView, PartitionView, SegmentView
from rlmm.views.status import EngineView
from rlmm.views.values import AnyObject, Count, Int32, Int64, PlaceOffsets, ViewObject

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.views.values import View


class SegmentOrNoneView(ViewObject):
    segment: SegmentView | None


class LookupView(PartitionView):
    topic: Annotated[str, Meta(min_length=1)]
    epoch: Int32
    offset: Int64


class LookupsView(ViewObject):
    lookups: list[LookupView]


class HighestOffsetView(ViewObject):
    highest_offset: Int64 | None


class SizeView(ViewObject):
    size_bytes: Count


class PartitionDeleteOrNoneView(ViewObject):
    partition_delete: PartitionDeleteView | None


class ReadyView(ViewObject):
    is_ready: bool


class ReadTokenView(ViewObject):
    read_token: PlaceOffsets
    at_least: Annotated[str, Meta(description="The same, as a question takes it.")]


class StatusView(ViewObject):
    is_ready: bool
    clusters: list[EngineView]
    process: AnyObject | UnsetType = UNSET


class ErrorView(ViewObject):
    code: Annotated[str, Meta(description="Stable; see docs/errors.md.")]
    message: str
    retriable: bool
    fields: Annotated[AnyObject, Meta(description="The values in the message, by name.")]


class RefusedView(ViewObject):
    error: ErrorView


class ListingEnd(ViewObject):
    segments: Count


class SegmentsEndView(ViewObject):
    """The last line of a listing that is whole."""

    end: ListingEnd


def ref(name: str) -> View:
    return {"$ref": f"#/components/schemas/{name}"}


def any_of(*names: str) -> View:
    return {"anyOf": [ref(name) for name in names]}


_TYPES: Final = (
    SegmentOrNoneView, SegmentsEndView, LookupsView, HighestOffsetView, SizeView,
    PartitionDeleteOrNoneView, ReadyView, ReadTokenView, StatusView, BrokerPartitionsView,
    BrokerFilesView, ReadinessView, LivenessView, RefusedView,
)  # fmt: skip


@cache
def schemas() -> Mapping[str, Any]:
    """Return the schemas by name; they are generated when they are first asked for."""
    answers = {"type": "array", "items": any_of("SegmentOrNone", "Refused")}
    return {
        **components_of(_TYPES, "#/components/schemas/"),
        "Segments": {"type": "array", "items": any_of("Segment", "Refused")},
        "SegmentLine": any_of("Segment", "Refused", "SegmentsEnd"),
        "Answers": {
            "type": "object",
            "properties": {"answers": answers},
            "required": ["answers"],
            "additionalProperties": False,
        },
        "Bytes": {"description": "Bytes as they are in the file."},
        "Text": {"type": "string"},
        "Document": {"type": "object"},
    }
