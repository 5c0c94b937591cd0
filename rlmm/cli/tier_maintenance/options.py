"""The options of maintenance commands: metadata, store, topics, engine."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from rlmm.cli.common.option_kinds import CalledAsFlag, attach, with_options
from rlmm.cli.common.output import OUTPUTS
from rlmm.cli.common.source_choice import asked_of, source_flags
from rlmm.cli.tier_common.object_store import store_flags, store_of
from rlmm.cli.tier_common.options import (
    engine_of,
    running_flags,
    topic_flags,
)
from rlmm.errors import ConfigError
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.maintenance.tier import CareRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Wanted = Literal["required", "optional", "none"]

_FOLDER = click.Path(file_okay=False, path_type=Path)
_NEW_FILE = click.Path(dir_okay=False, path_type=Path)
_EMBEDDED = click.option(
    "--embedded", type=_FOLDER, metavar="FOLDER",
    help="The metadata log that copy jobs keep in FOLDER.",
)  # fmt: skip
_REPORT = (
    click.option(
        "--output", type=click.Choice(OUTPUTS), default="table", show_default=True,
        help="json prints the report as one document, and nothing else.",
    ),
    click.option(
        "--report", "report_file", cls=CalledAsFlag, type=_NEW_FILE, metavar="FILE",
        help="Also write the report to a new file.",
    ),
)  # fmt: skip


def care_options(
    *,
    store: Wanted = "required",
    metadata: Wanted = "required",
    has_topics: bool = True,
    has_engine: bool = True,
) -> Callable[[Callable[..., Any]], Any]:
    """
    Return a decorator: the command gets a `CareRequest`, and `output` and `report_file`. *store*
    and *metadata* say whether they must be named.
    """
    groups: list[Any] = []
    if metadata != "none":
        groups += [*source_flags(), _EMBEDDED]
    if store != "none":
        groups += store_flags(is_required=store == "required")
    if has_topics:
        groups += topic_flags()
    if has_engine:
        groups += running_flags()

    add = with_options(groups, functools.partial(care_request_of, metadata=metadata))
    return lambda function: add(attach(_REPORT)(function))


def care_request_of(flags: Mapping[str, Any], metadata: Wanted = "optional") -> CareRequest:
    """Raise `ConfigError` for contradicting flags."""
    flags = dict(flags)
    request = CareRequest()
    if "topics" in flags:
        topics = SegmentSelection(tuple(flags["topics"]), tuple(flags["without_topics"]))
        request = replace(request, topics=topics)
    if flags.get("store"):
        choice = store_of(flags)
        request = replace(request, store=choice.settings, prefix=choice.prefix)
    if "master" in flags:
        request = replace(request, engine=engine_of(flags))
    if metadata == "none" or "embedded" not in flags:
        return request
    embedded = flags["embedded"]
    is_named = any(flags[name] for name in ("sidecar", "log_dirs", "bootstrap_server"))
    if embedded is not None:
        if flags["sidecar"] or flags["log_dirs"]:
            msg = "the metadata is in --embedded or at another source: name one of the two"
            raise ConfigError(msg)
        request = replace(request, embedded=embedded.absolute())
    if is_named or (metadata == "required" and embedded is None):
        # Without any the service of this machine is asked, as by every command that looks.
        asked = asked_of(flags, click.get_current_context())
        request = replace(request, source=asked.settings, wait_s=asked.wait_s)
    return request
