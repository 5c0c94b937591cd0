"""
The JSON schemas of answers, generated from their types. `python -m rlmm.cli.answer_schemas` names
them, and prints those that it is given by name.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

from rlmm.cli.common.answer_header import LogHead, MomentHead
from rlmm.cli.queries.check import CheckHead
from rlmm.cli.queries.diff import DiffFoot
from rlmm.cli.queries.doctor import DoctorHead
from rlmm.cli.queries.events import EventsFoot, EventsHead
from rlmm.cli.queries.explain_answer import ExplainHead
from rlmm.cli.queries.finding_answer import FindingsFoot
from rlmm.cli.queries.history import HistoryHead
from rlmm.cli.queries.lag import (
    DiskView,
    LagFoot,
    LagHead,
    LagView,
    OffsetsHead,
    OffsetsView,
)
from rlmm.cli.queries.preflight import PreflightHead
from rlmm.cli.queries.rehearse_compaction import HarmView, LevelView, RehearsalHead
from rlmm.cli.queries.segment_answer import (
    DescribedSegmentView,
    FindFoot,
    FindHead,
    FoundSegmentView,
)
from rlmm.cli.queries.segments import SegmentsFoot
from rlmm.cli.queries.status import StatusFoot
from rlmm.cli.queries.stuck import StuckHead
from rlmm.cli.queries.support_bundle import BundledFile, BundleHead
from rlmm.cli.queries.usage import UsageFoot, UsageHead, UsageView
from rlmm.cli.queries.verify import VerifyHead
from rlmm.findings.finding import FindingView
from rlmm.views.change import ChangeView, PartitionChangeView
from rlmm.views.event import EventView, HistoryLineView
from rlmm.views.generated_schemas import components_of
from rlmm.views.segment import SegmentView
from rlmm.views.source_status import PlaceStatusView, SourceStatusView

if TYPE_CHECKING:
    from collections.abc import Mapping

AnswerTypes = tuple[str, type, type, type | None]
"""The command, and the types of the head, of an item and of the foot of its answer."""

TYPES: Final[Mapping[str, AnswerTypes]] = {
    "check": ("check", CheckHead, FindingView, FindingsFoot),
    "diff": ("diff", LogHead, ChangeView, DiffFoot),
    "diff-summary": ("diff --summary", LogHead, PartitionChangeView, DiffFoot),
    "disks": ("lag --disks", LagHead, DiskView, LagFoot),
    "doctor": ("doctor", DoctorHead, FindingView, FindingsFoot),
    "events": ("events", EventsHead, EventView, EventsFoot),
    "explanation": ("explain", ExplainHead, FindingView, None),
    "history": ("history", HistoryHead, HistoryLineView, EventsFoot),
    "lag": ("lag", LagHead, LagView, LagFoot),
    "offsets": ("offsets", OffsetsHead, OffsetsView, None),
    "preflight": ("preflight", PreflightHead, FindingView, FindingsFoot),
    "rehearsal": ("rehearse-compaction", RehearsalHead, LevelView, None),
    "rehearsal-segments": ("rehearse-compaction --segments", RehearsalHead, HarmView, None),
    "segment": ("segments describe", MomentHead, DescribedSegmentView, None),
    "segments": ("segments list", MomentHead, SegmentView, SegmentsFoot),
    "segments-found": ("segments find", FindHead, FoundSegmentView, FindFoot),
    "status": ("status", SourceStatusView, PlaceStatusView, StatusFoot),
    "stuck": ("stuck", StuckHead, FindingView, FindingsFoot),
    "support-bundle": ("support-bundle", BundleHead, BundledFile, None),
    "usage": ("usage", UsageHead, UsageView, UsageFoot),
    "verify": ("verify", VerifyHead, FindingView, FindingsFoot),
}
_NOTES: Final = {"type": "array", "items": {"type": "string"}}


def schema_of(kind: str) -> dict[str, Any]:
    """Return the schema of one kind of answer; every document may have notes."""
    command, head, item, foot = TYPES[kind]
    definitions = components_of([one for one in (head, item, foot) if one], "#/$defs/")
    before = definitions.pop(head.__name__.removesuffix("View"))
    behind = {} if foot is None else definitions.pop(foot.__name__)
    items = {"type": "array", "items": {"$ref": f"#/$defs/{item.__name__.removesuffix('View')}"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:rlmm:{kind}:1",
        "title": f"Answer of rlmm {command}",
        "type": "object",
        "additionalProperties": False,
        "required": [
            "schema", *before["required"], "items", *behind.get("required", ())
        ],
        "properties": {
            "schema": {"const": f"rlmm/{kind}/1"},
            "notes": _NOTES,
            **before["properties"],
            "items": items,
            **behind.get("properties", {}),
        },
        "$defs": definitions,
    }  # fmt: skip


def main(names: list[str]) -> int:
    """Print the schemas of *names*, as `stuck-1`; without a name all names."""
    known = {f"{kind}-1": kind for kind in TYPES}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.stderr.write(f"no such schema: {', '.join(unknown)}\n")
        return 2
    for name in names:
        sys.stdout.write(f"{json.dumps(schema_of(known[name]), indent=2)}\n")
    if not names:
        sys.stdout.writelines(f"{name}\n" for name in known)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
