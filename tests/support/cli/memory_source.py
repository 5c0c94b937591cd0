"""A source of the tiered state over a log in memory."""

from __future__ import annotations

import json
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from rlmm.cli import main
from rlmm.cli.common import query_command
from rlmm.cli.common.query_run import QueryContext
from rlmm.cli.printing.printers import write_answer
from rlmm.cli.printing.settings import PrintSettings
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.replay import replay
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.metadata.ids import Uuid
from rlmm.state_sources.protocol import SourceStatus, StateSourceKind
from tests.support.cli.json_schemas import require_valid
from tests.support.cli.metadata_history import History

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator

    from click.testing import Result

    from rlmm.cli.printing.answer import CommandAnswer
    from rlmm.inspection.cluster_facts import ClusterFacts
    from rlmm.inspection.moment import Moment
    from rlmm.inspection.replay import EventLog, Progress
    from rlmm.metadata.events import Event
    from rlmm.state_sources.protocol import StateSource
    from rlmm.state_sources.settings import SourceSettings


CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
METADATA_TOPIC_ID = Uuid(bytes(15) + b"\x02")


class MemorySource:
    kind = StateSourceKind.FOLDERS
    where = "memory"

    def __init__(
        self,
        history: History,
        *,
        cluster: ClusterFacts | None = None,
        standing: SourceStatus | None = None,
    ) -> None:
        self.history = history
        self.log: EventLog = history.log
        self.cluster = cluster
        self._standing = standing
        self.is_closed = False

    async def standing(self) -> SourceStatus:
        if self._standing is not None:
            return self._standing
        return SourceStatus(self.kind, self.where, await self.log.identity(timeout_s=5), ())

    async def now(
        self,
        places: Collection[int] | None = None,
        *,
        wait_s: float = 0.0,
        progress: Progress | None = None,
    ) -> Moment:
        assert wait_s >= 0
        return await replay(self.log, places, timeout_s=5, progress=progress)

    async def close(self) -> None:
        self.is_closed = True


def looking_at(
    history: History,
    *,
    cluster: ClusterFacts | None = None,
    standing: SourceStatus | None = None,
    now_ms: int | None = None,
    bound: ReplayEnd | None = None,
    offset: int | None = None,
) -> QueryContext:
    return QueryContext(
        MemorySource(history, cluster=cluster, standing=standing),
        history.clock.at_ms if now_ms is None else now_ms,
        bound or ReplayEnd(),
        timeout_s=5.0,
        offset=offset,
    )


async def printed(answer: CommandAnswer, output: str = "table", **settings: Any) -> str:
    out = StringIO()
    await write_answer(answer, PrintSettings(output, **settings), out)
    return out.getvalue()


async def document_of(answer: CommandAnswer) -> Any:
    return json.loads(await printed(answer, "json"))


async def valid_document_of(answer: CommandAnswer) -> Any:
    document = await document_of(answer)
    require_valid(document)
    return document


def exit_code(answer: CommandAnswer) -> int:
    return answer.exit_code if isinstance(answer.exit_code, int) else answer.exit_code()


@contextmanager
def commands_ask(make: Callable[[], Awaitable[StateSource]]) -> Iterator[None]:
    async def open_source(
        settings: SourceSettings, *, progress: Progress | None = None
    ) -> StateSource:
        return await make()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query_command, "open_source", open_source)
        yield


def command_on(events: Iterable[Event | bytes], *words: str, **environ: str) -> Result:
    async def make() -> StateSource:
        history = History()
        history.topic.cluster_id = CLUSTER_ID
        history.topic.topic_id = METADATA_TOPIC_ID
        history.log = MemoryLog(history.topic)
        await history.add(*events)
        return MemorySource(history)

    with commands_ask(make):
        return CliRunner().invoke(main.cli, list(words), env=environ)
