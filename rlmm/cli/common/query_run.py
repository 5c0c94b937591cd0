"""Run of a query: open the source, ask one question, print the answer. Imports little, for help."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from rlmm.cli.common.partial_metadata import knows, of_assigned, of_ready
from rlmm.errors import InvalidArgument
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.selectors import resolve
from rlmm.metadata.assignment import place_of
from rlmm.metadata.ids import TopicIdPartition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from rlmm.cli.common.partial_metadata import Holds
    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.cli.printing.answer import CommandAnswer
    from rlmm.inspection.moment import Moment, PartitionSummary
    from rlmm.inspection.replay import Progress
    from rlmm.inspection.selectors import PartitionLabel
    from rlmm.state_sources.protocol import StateSource

    Ask = Callable[["QueryContext"], Awaitable[CommandAnswer]]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueryContext:
    """The context of a query: a source, the requested moment, and the current time."""

    source: StateSource
    now_ms: int
    bound: ReplayEnd = field(default_factory=ReplayEnd)
    """Of `--at`; nothing set means now. See `bound_of`."""
    wait_s: float = 0.0
    timeout_s: float = 30.0
    progress: Progress | None = None
    offset: int | None = None
    """Of `--at` with a bare offset: of the one metadata partition that is asked about."""
    notes: list[str] = field(default_factory=list)
    """Notes that standard error has already; see `tell`."""

    @property
    def is_now(self) -> bool:
        return self.bound.is_now and self.offset is None

    def bound_of(self, places: Collection[int] | None = None) -> ReplayEnd:
        """Return the bound for *places*, or all. `InvalidArgument` for a bare offset of several."""
        if self.offset is None:
            return self.bound
        if places is None or len(set(places)) != 1:
            msg = (
                f"--at {self.offset} is an offset of one metadata partition, and several are asked "
                f"about: say which, --at PARTITION:{self.offset}, or a time"
            )
            raise InvalidArgument(msg)
        return ReplayEnd({next(iter(places)): self.offset})

    async def partition(self, label: PartitionLabel) -> TopicIdPartition:
        """
        Return the partition that *label* names now, whatever moment the query is about. Raises
        `UnknownPartition`, or `InvalidArgument` if several topics had the name.
        """
        if label.whole is not None:
            return label.whole
        places = None
        if label.topic_id is not None:  # the name of the topic is not needed for its place
            unnamed = TopicIdPartition(label.topic_id, "", label.partition)
            identity = await self.source.log.identity(timeout_s=self.timeout_s)
            places = [place_of(unnamed, identity.partition_count)]
        known = await self.known(label, places)
        return resolve(label, [one.partition for one in known])

    async def known(
        self, label: PartitionLabel, places: Collection[int] | None = None
    ) -> list[PartitionSummary]:
        """
        Return every user partition that is known now in *places*, or in all. If some are not ready,
        the ready ones answer if *label* names a partition there; else raises `NotReady`.
        """
        now = partial(self.source.now, wait_s=self.wait_s, progress=self.progress)
        return await (await of_ready(self, now, knows(label.names), places)).user_partitions()

    async def place_of(self, partition: TopicIdPartition) -> int:
        identity = await self.source.log.identity(timeout_s=self.timeout_s)
        return place_of(partition, identity.partition_count)

    def tell(self, note: str) -> None:
        """Print a note once, whatever the output is."""
        if note not in self.notes:
            self.notes.append(note)
            _log.warning("%s", note)  # rows of CSV, and lines, have no notes

    async def moment(self, places: Collection[int] | None = None) -> Moment:
        """
        Return the requested state of *places*, or of all that the source serves. A note tells if
        those are not all. Raises `NotReady` if the source is not caught up.
        """
        return await (of_assigned(self) if places is None else self.whole(places))

    async def whole(self, places: Collection[int] | None = None) -> Moment:
        """Return the state of *places*, or of all, for conclusions from absence; or `NotReady`."""
        if self.is_now:
            return await self.source.now(places, wait_s=self.wait_s, progress=self.progress)
        from rlmm.inspection.replay import replay  # noqa: PLC0415  # not for --help

        return await replay(
            self.source.log, places, self.bound_of(places),
            timeout_s=self.timeout_s, progress=self.progress,
        )  # fmt: skip

    async def moment_with(self, holds: Holds) -> Moment:
        """Return the state of all, or of the ready ones if it *holds* the item; or `NotReady`."""
        return await of_ready(self, self.whole, holds)


def answer(
    asked: SourceChoice, ask: Callable[..., Awaitable[CommandAnswer]], **flags: object
) -> None:
    from rlmm.cli.common.query_command import run  # noqa: PLC0415  # as above

    run(asked, partial(ask, **flags))
