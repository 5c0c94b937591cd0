"""Command of a query: from its flags to its exit code."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from rlmm import errors
from rlmm.base.visible_text import visible
from rlmm.cli.common.exit_codes import echo_traceback, error_line
from rlmm.cli.common.query_run import QueryContext
from rlmm.cli.printing.printers import write_answer
from rlmm.errors import RlmmError
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.source_status import NOT_ASSIGNED
from rlmm.state_sources.opening import open_source
from rlmm.state_sources.replay_bar import replay_bar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from rlmm.cli.common.query_run import Ask
    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.inspection.replay import Progress
    from rlmm.state_sources.protocol import StateSource

_HINTS: dict[type[errors.RlmmError], str] = {
    errors.NotReady: "wait for it with --wait 30s",
    errors.SidecarUnavailable: "name a running service with --sidecar, or look without one: "
    "--bootstrap-server, --log-dirs",
    errors.LogUnavailable: "see that --bootstrap-server and --command-config are right",
    errors.LogNotPermitted: "the rights that are needed: READ and DESCRIBE on the metadata topic",
    errors.NotPermitted: "show a token that may do it with --token-file",
    errors.LogTruncated: "ask about a later moment: what the log no longer has cannot be read",
    errors.OverBudget: "ask again later",
    errors.TooBusy: "ask again later",
}

_NEVER_BY_ITSELF = {
    "absent": "look where it is held: in all its folders with --log-dirs, or in the topic itself "
    "with --bootstrap-server",
    NOT_ASSIGNED: "look in the topic itself with --bootstrap-server",
    "misplaced": "see them with `rlmm verify`; the metadata topic may have got partitions",
    "not-understood": "see them with `rlmm events --verdict undecodable`",
}
"""By the reason why something is not ready, where waiting brings nothing."""


def place_of(error: errors.RlmmError) -> str:
    """Return the progress of a metadata partition that is not ready, if the error has it."""
    if not isinstance(error, errors.NotReady) or error.records_left is None:
        return ""
    if str(error.target) in str(error):
        return ""
    return (
        f"metadata partition {error.metadata_partition} is at {error.position} of {error.target}, "
        f"{error.records_left} records are left"
    )


def hint_of(error: errors.RlmmError) -> str:
    """Return the way out that errors of this class have in common, if there is one."""
    if isinstance(error, errors.NotReady) and error.reason in _NEVER_BY_ITSELF:
        return _NEVER_BY_ITSELF[error.reason]
    for kind in type(error).__mro__:
        if kind in _HINTS:
            return _HINTS[kind]
    return ""


_FIRST_TROUBLE_S = 12.0
"""A little longer than a source waits for a cluster's first answer."""


def run(asked: SourceChoice, ask: Ask) -> None:
    """Run the query, print the answer, and exit with its code."""
    try:
        code = asyncio.run(_run(asked, ask))
    except RlmmError as error:
        code = error.exit_code
        tell(error, is_debug=asked.is_debug)
    click.get_current_context().exit(code)


def tell(error: RlmmError, *, is_debug: bool = False) -> None:
    if is_debug or click.get_current_context().find_root().params.get("is_debug"):
        echo_traceback(error)
    line = "; ".join(filter(None, (error_line(error), place_of(error), hint_of(error))))
    with suppress(OSError):  # stderr may be closed; the exit code still reports the error
        click.echo(visible(line), err=True)


async def _run(asked: SourceChoice, ask: Ask) -> int:
    is_quiet = asked.printing.is_quiet or sys.stderr is None
    with _said_once(), replay_bar(is_quiet=is_quiet) as bar:
        async with opened(asked, bar) as source:
            looking = looking_of(asked, source, bar)
            answer = await ask(looking)
            if bar is not None:
                bar.close()
            answer = replace(answer, told=looking.notes)
            return await write_answer(answer, asked.printing, on_nobody=discard_output)


@contextmanager
def _said_once() -> Iterator[None]:
    """Mute the Kafka client's log until the first answer: a failure ends the command anyway."""
    begin_s = time.monotonic()

    def is_later(record: logging.LogRecord) -> bool:
        del record
        return time.monotonic() - begin_s > _FIRST_TROUBLE_S

    logger = logging.getLogger("rlmm.kafka_client.connections.cluster_view")
    logger.addFilter(is_later)
    try:
        yield
    finally:
        logger.removeFilter(is_later)


@asynccontextmanager
async def opened(asked: SourceChoice, progress: Progress | None) -> AsyncIterator[StateSource]:
    source = await open_source(asked.settings, progress=progress)
    try:
        yield source
    finally:
        await source.close()


def looking_of(asked: SourceChoice, source: StateSource, progress: Progress | None) -> QueryContext:
    at = asked.at
    return QueryContext(
        source,
        asked.now_ms,
        ReplayEnd() if at is None else ReplayEnd(at.offsets, at.time_ms),
        asked.wait_s,
        asked.settings.timeout_s,
        progress,
        None if at is None else at.offset,
    )


def discard_output() -> None:
    """Discard standard output when its reader has gone, so that the flush at exit works."""
    if sys.stdout is None:
        return
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
