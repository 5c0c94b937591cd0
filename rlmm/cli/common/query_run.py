"""
How a command that looks at the state runs: a source is opened, one question is asked of it, and
what comes of it is printed.

Imports little: who only asks for help, or for a completion, waits for nothing.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import TopicIdPartition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from rlmm.cli.common.source_options import SourceChoice
    from rlmm.cli.partial_metadata.ready_partitions import Holds
    from rlmm.cli.printing.answer import CommandAnswer
    from rlmm.inspection.moment import Moment, PartitionSummary
    from rlmm.inspection.replay import Progress, ReplayEnd
    from rlmm.inspection.selectors import PartitionLabel
    from rlmm.state_sources.protocol import StateSource

    Ask = Callable[["QueryContext"], Awaitable[CommandAnswer]]
    """A question; see `rlmm.cli.printing.answer`."""

_log = logging.getLogger("rlmm.cli.asking")


def _up_to_now() -> ReplayEnd:
    from rlmm.inspection.replay import ReplayEnd  # noqa: PLC0415  # not for help and completion

    return ReplayEnd()


@dataclass(frozen=True, slots=True)
class QueryContext:
    """What a question is asked of: a source, the moment that is meant, and what the time is."""

    source: StateSource
    now_ms: int
    """The wall clock, looked up once for the whole command."""
    bound: ReplayEnd = field(default_factory=_up_to_now)
    """Of `--at`; nothing set means now. See `bound_of`."""
    wait_s: float = 0.0
    timeout_s: float = 30.0
    progress: Progress | None = None
    offset: int | None = None
    """Of `--at` with a bare offset: of the one metadata partition that is asked about."""
    notes: list[str] = field(default_factory=list)
    """What was said on standard error of all that is answered; see `tell`."""

    @property
    def is_now(self) -> bool:
        """Whether the present is meant."""
        return self.bound.is_now and self.offset is None

    def bound_of(self, places: Collection[int] | None = None) -> ReplayEnd:
        """
        Up to where the metadata partitions *places*, or all, are read. Raises `InvalidArgument`
        for a bare offset where they are not one.
        """
        from rlmm.inspection.replay import ReplayEnd  # noqa: PLC0415  # not for help and completion

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
        The user partition that is meant by *label*, as it is known now, whatever moment is asked
        about. Raises `UnknownPartition`, or `InvalidArgument` where several topics had the name.
        """
        from rlmm.inspection.selectors import resolve  # noqa: PLC0415
        from rlmm.metadata.assignment import place_of  # noqa: PLC0415  # as above

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
        Every user partition that is known now in *places*, or in all; where not all are ready, in
        those that are, as long as *label* names one there. Raises `NotReady` if it does not.
        """
        from rlmm.cli.partial_metadata.ready_partitions import knows, of_ready  # noqa: PLC0415  # as above

        now = partial(self.source.now, wait_s=self.wait_s, progress=self.progress)
        return await (await of_ready(self, now, knows(label.names), places)).user_partitions()

    async def place_of(self, partition: TopicIdPartition) -> int:
        """The metadata partition where the events of *partition* live."""
        from rlmm.metadata.assignment import place_of  # noqa: PLC0415  # as above

        identity = await self.source.log.identity(timeout_s=self.timeout_s)
        return place_of(partition, identity.partition_count)

    def tell(self, note: str) -> None:
        """Say once, whatever the output is, what whoever reads the answer has to know of it."""
        if note not in self.notes:
            self.notes.append(note)
            _log.warning("%s", note)  # rows of CSV, and lines, have no notes

    async def moment(self, places: Collection[int] | None = None) -> Moment:
        """
        The state that is meant, of the metadata partitions *places*, or of all that the source is
        there for: a note says so where that is not every one. Raises `NotReady` where it is not
        known as far as that.
        """
        from rlmm.cli.partial_metadata.assigned_partitions import of_assigned  # noqa: PLC0415  # as above

        return await (of_assigned(self) if places is None else self.whole(places))

    async def whole(self, places: Collection[int] | None = None) -> Moment:
        """
        The state that is meant, of the metadata partitions *places* or of every one, for who would
        conclude from what is not there. Raises `NotReady` where it is not known as far as that.
        """
        from rlmm.inspection.replay import replay  # noqa: PLC0415  # as above

        if self.is_now:
            return await self.source.now(places, wait_s=self.wait_s, progress=self.progress)
        return await replay(
            self.source.log, places, self.bound_of(places),
            timeout_s=self.timeout_s, progress=self.progress,
        )  # fmt: skip

    async def moment_with(self, holds: Holds) -> Moment:
        """
        The state that is meant, of all metadata partitions; where not all are ready, of those that
        are, as long as that *holds* what is asked for. Raises `NotReady` if it does not.
        """
        from rlmm.cli.partial_metadata.ready_partitions import of_ready  # noqa: PLC0415  # as above

        return await of_ready(self, self.whole, holds)


def answer(asked: SourceChoice, ask: Ask) -> None:
    """Ask, print, and end the command with the exit code that comes of it."""
    from rlmm.cli.common.query_command import run  # noqa: PLC0415  # as above

    run(asked, ask)
