"""`rlmm status`: how each metadata partition stands, once and again and again."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from rich.console import Console
from rich.live import Live

from rlmm.cli import main
from rlmm.cli.common.source_choice import SourceChoice
from rlmm.cli.common.watch_mode import JsonAnswerLines, WatchView, keep_asking
from rlmm.cli.printing.printers import AnswerStream, ReaderGone
from rlmm.cli.printing.settings import PrintSettings
from rlmm.cli.queries.status import WatchedStatus, status_answer
from rlmm.errors import ConfigError, SidecarUnavailable
from rlmm.inspection.source_status import MetadataPartitionStatus, SourceStatus
from rlmm.log.protocol import LogIdentity
from rlmm.state_sources.protocol import StateSourceKind
from rlmm.state_sources.settings import SourceSettings
from rlmm.views.source_status import standing_totals
from tests.support.cli.json_schemas import require_valid
from tests.support.cli.memory_source import (
    CLUSTER_ID,
    METADATA_TOPIC_ID,
    MemorySource,
    commands_ask,
    document_of,
    looking_at,
)
from tests.support.cli.metadata_history import History
from tests.support.cli.recorded_outputs import require_golden

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.errors import RlmmError
    from rlmm.state_sources.protocol import StateSource

COUNTS = {"COPY_SEGMENT_STARTED": 1, "COPY_SEGMENT_FINISHED": 99, "DELETE_SEGMENT_STARTED": 0}
OPEN = MetadataPartitionStatus(
    0, "open", None, "", 0, 12_345_678, 12_345_678, 12_345_680, 2, 1.5, 3, COUNTS, 5 * 2**30,
    rejected={"unknown-segment": 2}, undecodable={"truncated": 1}, is_history_complete=True,
    snapshot_age_s=7_500.0,
)  # fmt: skip
REPLAYING = MetadataPartitionStatus(
    1, "replaying", "replaying", "reading its history", 0, 500, 1_000, 1_000, 500, 86_400.0,
    None, None, None,
)  # fmt: skip
IDENTITY = LogIdentity(CLUSTER_ID, METADATA_TOPIC_ID, 2)
READY = SourceStatus(StateSourceKind.SIDECAR, "/run/rlmm/rlmm.sock", IDENTITY, (OPEN,))
BEHIND = replace(READY, places=(OPEN, REPLAYING), notes=("this service observes",))
UNKNOWN = SourceStatus(StateSourceKind.SIDECAR, "host:7404", None, ())
ASKED = SourceChoice(SourceSettings(sidecar="x:1"), PrintSettings(), 0)


def run(standing: SourceStatus, *words: str) -> Any:
    async def make() -> StateSource:
        return MemorySource(History(), standing=standing)

    with commands_ask(make):
        return CliRunner().invoke(main.cli, ["status", *words])


@pytest.mark.parametrize(
    ("name", "standing", "exit_code"),
    [("status", READY, 0), ("status-behind", BEHIND, 4), ("status-unknown", UNKNOWN, 4)],
)
def test_status_when_asked_prints_what_it_printed_before(
    name: str, standing: SourceStatus, exit_code: int
) -> None:
    """Table and document to the letter; not ready, whole or in part, is exit code 4."""
    table = run(standing, "--output", "table")
    require_golden(f"{name}.txt", table.stdout)
    whole = run(standing, "--output", "json")
    require_golden(f"{name}.json", whole.stdout)
    require_valid(json.loads(whole.stdout))
    assert (table.exit_code, whole.exit_code) == (exit_code, exit_code)


def test_status_when_the_source_says_its_engine_then_shows_it() -> None:
    """A line of the table and two fields of the document say what holds the state."""
    standing = replace(READY, engine=("native", "0.1.0"))
    assert "engine native 0.1.0" in run(standing, "--output", "table").stdout.splitlines()
    document = json.loads(run(standing, "--output", "json").stdout)
    require_valid(document)
    assert (document["engine"], document["engine_version"]) == ("native", "0.1.0")


def test_totals_when_a_partition_does_not_say_are_not_known() -> None:
    """A total is unknown when one partition has no value, and other totals add up."""
    totals = standing_totals(BEHIND.places)
    assert (totals.segments, totals.size_bytes) == (None, None)
    assert (totals.open, totals.metadata_partitions, totals.lag_records) == (1, 2, 502)
    assert totals.rejected == {"unknown-segment": 2}
    both = standing_totals((OPEN, replace(OPEN, metadata_partition=1, lag_s=9.0)))
    assert both.segments == {name: 2 * count for name, count in COUNTS.items()}
    assert (both.lag_s, both.size_bytes) == (9.0, 10 * 2**30)


class Changing(MemorySource):
    """A source with another standing at each question; the last one stays."""

    def __init__(self, *found: SourceStatus | RlmmError) -> None:
        super().__init__(History())
        self._found = list(found)
        self.asked = 0

    async def standing(self) -> SourceStatus:
        self.asked += 1
        found = self._found.pop(0) if len(self._found) > 1 else self._found[0]
        if isinstance(found, SourceStatus):
            return found
        raise found


async def test_status_when_it_waits_looks_until_all_is_answered_from() -> None:
    """`--wait`: the answer is the first one that is ready, before the time is up."""
    source = Changing(BEHIND, BEHIND, READY)
    looking = replace(looking_at(source.history), source=source, wait_s=30.0)
    answer = await status_answer(looking, is_waiting=True)
    assert answer.exit_code == 0
    assert source.asked == 3


async def test_status_when_the_time_is_up_says_how_it_stands() -> None:
    """After `--wait` the command prints the status and ends with the exit code of not ready."""
    source = Changing(BEHIND)
    looking = replace(looking_at(source.history), source=source, wait_s=0.01)
    assert (await status_answer(looking, is_waiting=True)).exit_code == 4
    looking = replace(looking, wait_s=0.0)
    source.asked = 0
    await status_answer(looking, is_waiting=True)
    assert source.asked == 1


async def test_watching_when_positions_move_shows_how_fast() -> None:
    """Records a second since the look before; nothing is known at the first."""
    later = replace(
        READY, places=(replace(OPEN, position=OPEN.position + 3_000 if OPEN.position else 0),)
    )
    source = Changing(READY, later)
    ask = WatchedStatus()
    looking = replace(looking_at(source.history), source=source, now_ms=1_000)
    first = await document_of(await ask(looking))
    second = await document_of(await ask(replace(looking, now_ms=3_000)))
    assert first["items"][0]["records_per_s"] is None
    assert second["items"][0]["records_per_s"] == 1_500
    require_valid(second)


async def test_watching_elsewhere_than_on_a_terminal_is_a_line_for_each_look() -> None:
    """Each look prints one JSON document with its time, and passing errors are reported."""
    stream = StringIO()
    source = Changing(READY, SidecarUnavailable("gone"), BEHIND)
    told: list[RlmmError] = []

    class Told(JsonAnswerLines):
        def trouble(self, error: RlmmError) -> None:
            told.append(error)

    await keep_asking(ASKED, WatchedStatus(), source, Told(AnswerStream(stream)), 0.0, times=3)
    documents = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [one["is_caught_up"] for one in documents] == [True, False]
    for one in documents:
        require_valid(one)
        assert one["at"]
    assert [str(error) for error in told] == ["gone"]


@pytest.mark.parametrize("error", [ConfigError, ReaderGone])
async def test_watching_when_waiting_does_not_help_or_nobody_reads_any_more_ends(
    error: type[Exception],
) -> None:
    """The watch ends at an error that waiting cannot cure, and when its pipe is closed."""
    stream = StringIO()
    source = Changing(ConfigError("wrong") if error is ConfigError else READY)
    if error is ReaderGone:
        stream.close()
    lines = JsonAnswerLines(AnswerStream(stream))
    with pytest.raises(error):
        await keep_asking(ASKED, WatchedStatus(), source, lines, 0.0)


@pytest.fixture
def live() -> Iterator[tuple[Live, StringIO]]:
    stream = StringIO()
    console = Console(file=stream, force_terminal=True, width=80, height=24, color_system=None)
    with Live(console=console, auto_refresh=False) as view:
        yield view, stream


async def test_watching_on_a_terminal_draws_the_table_anew(live: tuple[Live, StringIO]) -> None:
    """The screen has sums above the table, and an error above the table of the last answer."""
    view, stream = live
    source = Changing(READY, SidecarUnavailable("gone"))
    screen = WatchView(view, PrintSettings())
    await keep_asking(ASKED, WatchedStatus(), source, screen, 0.0, times=1)
    text = stream.getvalue()
    assert text.index("1 of 1 metadata partitions") < text.index("RECORDS/S")
    stream.truncate(0)
    await keep_asking(ASKED, WatchedStatus(), source, screen, 0.0, times=1)
    text = stream.getvalue()
    assert text.index("rlmm: sidecar-unavailable: gone") < text.index("RECORDS/S")


def test_watching_when_it_is_interrupted_closes_the_source() -> None:
    """Ctrl-C is how it ends: exit code 130, nothing on standard error."""
    sources: list[MemorySource] = []

    class Interrupted(MemorySource):
        async def standing(self) -> SourceStatus:
            raise KeyboardInterrupt

    async def make() -> StateSource:
        sources.append(Interrupted(History()))
        return sources[0]

    with commands_ask(make):
        result = CliRunner().invoke(main.cli, ["status", "--watch"])
    assert (result.exit_code, result.stderr) == (130, "")
    assert sources[0].is_closed
    asyncio.set_event_loop(None)
