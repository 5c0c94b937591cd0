"""The question of `rlmm tier export`, from its flags and from earlier plans."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlmm.cli.tier_common.options import flags_given
from rlmm.errors import ConfigError, InvalidArgument
from rlmm.inspection.selectors import parse_partition
from spark_tiering.read_plan.plan_files import require_plan
from spark_tiering.read_plan.question import Question, RecordBounds
from spark_tiering.read_plan.tier_plans import question_of_token
from spark_tiering.read_plan.tokens import PREFIX, PlanToken, parse_token
from spark_tiering.stores.s3_settings import S3Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_tiering.maintenance.tier import CareRequest
    from spark_tiering.read_plan.plan import FrozenPlan

_RANGE = re.compile(r"(?P<label>.+)@(?P<first>\d*):(?P<behind>\d*)", re.ASCII)


def named_plan(text: str | None) -> tuple[PlanToken | None, FrozenPlan | None]:
    """Return the token in *text*, or that of the plan in the file that it names."""
    if text is None:
        return None, None
    try:
        if text.strip().startswith(PREFIX):
            return parse_token(text), None
        plan = require_plan(Path(text))
        return parse_token(plan.token), plan
    except InvalidArgument as error:
        raise ConfigError(str(error)) from error


def asked_question(
    request: CareRequest,
    flags: Mapping[str, Any],
    since: PlanToken | None,
    before: FrozenPlan | None,
) -> Question:
    """Return the question; after an earlier plan the same as there, but for the flags given now."""
    try:
        said = _said(request, flags)
        if since is None or flags_given(("topics", "without_topics")):
            return said
        asked = before.question if before is not None else question_of_token(since)[0]
        # Where it ended is no end for what comes behind it; where it began is, in new partitions.
        bounds = replace(
            asked.bounds, to_offset=said.bounds.to_offset, to_time_ms=said.bounds.to_time_ms
        )
        bounds_of = {
            key: replace(one, to_offset=None, to_time_ms=None)
            for key, one in asked.bounds_of.items()
        }
        if request.store is not None:
            asked = replace(asked, prefix=said.prefix, location=said.location)
        return replace(asked, bounds=bounds, bounds_of=bounds_of)
    except InvalidArgument as error:
        raise ConfigError(str(error)) from error


def _said(request: CareRequest, flags: Mapping[str, Any]) -> Question:
    bounds_of: dict[tuple[str, int], RecordBounds] = {}
    for text in flags["ranges"]:
        key, bounds = _range(text)
        if key in bounds_of:
            msg = f"--range names {key[0]}-{key[1]} twice"
            raise ConfigError(msg)
        bounds_of[key] = bounds
    topics = request.topics.topics
    assigned: dict[str, list[int]] = {}
    if not topics:
        for topic, number in sorted(bounds_of):
            assigned.setdefault(topic, []).append(number)
    prefix = request.prefix
    if request.store is None:
        prefix = str(click.get_current_context().params.get("prefix") or "")
    return Question(
        topics,
        request.topics.without_topics,
        "",
        tuple((topic, tuple(numbers)) for topic, numbers in assigned.items()),
        RecordBounds(
            flags["from_offset"], flags["to_offset"], flags["from_time"], flags["to_time"]
        ),
        bounds_of,
        prefix,
        _location(request),
    )


def _range(text: str) -> tuple[tuple[str, int], RecordBounds]:
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        msg = (
            f"--range {text!r}: it is written orders-3@1000:2000, orders-3@1000: or orders-3@:2000"
        )
        raise ConfigError(msg)
    label = parse_partition(found["label"])
    if label.topic is None or label.topic_id is not None:
        msg = f"--range {text!r}: a partition is named by its topic here: orders-3"
        raise ConfigError(msg)
    first, behind = (int(found[name]) if found[name] else None for name in ("first", "behind"))
    return (label.topic, label.partition), RecordBounds(first, behind)


def _location(request: CareRequest) -> str:
    store = request.store
    if store is None:
        return ""
    return f"s3://{store.bucket}/" if isinstance(store, S3Settings) else f"{store.folder}/"
