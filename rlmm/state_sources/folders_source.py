"""Source of copied folders, replayed for one command; a missing partition raises `NotReady`."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, Self

from rlmm.base.native_core import engine_in_use
from rlmm.base.threads import in_own_thread
from rlmm.errors import ConfigError, NotReady
from rlmm.inspection.source_status import unread
from rlmm.log.files.log_folder import PARTITION_COUNT, UNKNOWN_CLUSTER_ID
from rlmm.log.request_checks import PARTITION_COUNT_MAX, require_count, require_partition
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.state_sources.copied_folders import find_copies
from rlmm.state_sources.folders_log import FoldersLog
from rlmm.state_sources.protocol import SourceStatus, StateSourceKind
from rlmm.state_sources.replayed_states import ReplayedStates

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from rlmm.inspection.replay import Progress, ShardsMoment
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.state_sources.brokers import Brokers

ABSENT = "absent"
_EVIDENCE = 3
"""So many user partitions fit a wrong count by chance once in thousands of topics."""
_NAMED_MAX = 10


class FoldersSource:
    kind = StateSourceKind.FOLDERS

    def __init__(
        self, log: FoldersLog, where: str, *, timeout_s: float, cluster: Brokers | None = None
    ) -> None:
        """Takes ownership of its arguments, and closes them."""
        self.log = log
        self.where = where
        self.cluster = cluster
        self._states = ReplayedStates(log, timeout_s=timeout_s)
        self._said: int | None = None
        self._notes: list[str] = []
        self._is_doubtful = False
        """Whether another number of partitions may well be the right one."""

    @classmethod
    async def open(
        cls,
        folders: Sequence[Path],
        *,
        timeout_s: float,
        partition_count: int | None = None,
        cluster: Brokers | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """
        Open *folders*; without *partition_count* all may be read to find it out. Raises
        `ConfigError`, one line, for folders that are not of one metadata topic.
        """
        require_count(partition_count)
        copies = await in_own_thread("copies", partial(find_copies, folders))
        made = cls(
            await FoldersLog.open(copies),
            ", ".join(map(str, folders)),
            timeout_s=timeout_s,
            cluster=cluster,
        )
        try:
            await made._settle(copies.partition_count, partition_count, copies.highest, progress)
        except BaseException:
            await made.log.close()  # what else was given is still the caller's
            raise
        return made

    # ------------------------------------------------------------------- how many partitions

    async def _settle(
        self, kept: int | None, said: int | None, highest: int, progress: Progress | None
    ) -> None:
        if kept is not None and said not in {None, kept}:
            msg = f"the folders were made with {kept} partitions, --partition-count says {said}"
            raise ConfigError(msg)
        if kept is None and said is None:
            self.log.settle(await self._deduced(highest, progress))
            return
        count = kept or said
        assert count is not None, "one of them is there"
        if highest >= count:
            whose = "they were made with" if said is None else "--partition-count says"
            msg = f"the folders hold metadata partition {highest}, and {whose} {count} partitions"
            raise ConfigError(msg)
        self._said = said
        self.log.settle(count)

    async def _deduced(self, highest: int, progress: Progress | None) -> int:
        places = range(highest + 1)
        await self._states.read([one for one in places if not self.log.missing([one])], progress)
        found = self._found()
        count = fitting_count(found, highest + 1)
        if count is None:
            one, place = found[0]
            msg = (
                f"by no number of partitions up to {PARTITION_COUNT_MAX} all {len(found)} user "
                f"partitions lie where they were found, e.g. {one} in metadata partition {place}: "
                "say how many the topic has with --partition-count"
            )
            raise ConfigError(msg)
        why = f"all {len(found)} user partitions found lie where they have to by that"
        if not found:
            why = "nothing was found that says it"
        elif count > highest + 1 and fitting_count(found, highest + 1, None) == highest + 1:
            why = f"{why}, and by {highest + 1} as well"
            self._is_doubtful = True
        self._is_doubtful |= len(found) < _EVIDENCE
        self._notes.append(
            f"the topic is taken to have {count} partitions, {why}; --partition-count says another"
        )
        return count

    def _found(self) -> list[tuple[TopicIdPartition, int]]:
        """Return every user partition with events, and its metadata partition."""
        return [
            (one, place)
            for place, held in self._states.held().items()
            for one in held.shard.partitions()
        ]

    def _judge_count(self) -> list[str]:
        """Compare the count with the records; `ConfigError` for a wrong one if another fits."""
        count = self.log.partition_count
        what = self._states.misplaced(count)
        if what is None:
            return []
        if self._said is not None:
            found = self._found()
            right = fitting_count(found, self.log.highest + 1)
            if right == PARTITION_COUNT or (right is not None and len(found) >= _EVIDENCE):
                msg = f"--partition-count {count} cannot be: {what}; by {right} all of them fit"
                raise ConfigError(msg)
        return [f"{what}: was the number of partitions changed?"]

    # ------------------------------------------------------------------------ as any source

    async def standing(self) -> SourceStatus:
        every = range(self.log.partition_count)
        missing = self.log.missing(every)
        there = [place for place in every if place not in set(missing)]
        await self.log.compare(there)
        places = await self._states.standings(there)
        for place in missing:
            detail = "no folder of it is among those that were named"
            places[place] = unread(place, ABSENT, ABSENT, detail)
        notes = [*self._notes, *self._judge_count(), *self.log.notes]
        if missing:
            notes.append(
                f"{len(missing)} of {len(every)} metadata partitions were not copied: "
                f"{_listed(missing)}"
            )
        identity = await self._states.identity()
        if identity.cluster_id == UNKNOWN_CLUSTER_ID:
            notes.append("the folders do not say which cluster they are of")
        notes += self._states.not_understood()
        in_order = tuple(places[place] for place in every)
        return SourceStatus(
            self.kind, self.where, identity, in_order, tuple(notes),
            engine=engine_in_use().pair,
        )  # fmt: skip

    async def now(
        self,
        places: Collection[int] | None = None,
        *,
        wait_s: float = 0.0,
        progress: Progress | None = None,
    ) -> ShardsMoment:
        """See `StateSource`. Waiting does not help: `NotReady` is raised at once."""
        del wait_s
        count = self.log.partition_count
        asked = range(count) if places is None else sorted(set(places))
        for place in asked:
            require_partition(place, count)
        missing = self.log.missing(asked)
        if missing:
            await self._states.read([one for one in asked if one not in set(missing)], progress)
            self._judge_count()  # by a wrong number of partitions some are missing that never were
            doubt = "".join(f"; {note}" for note in self._notes if self._is_doubtful)
            msg = (
                f"{len(missing)} of {count} metadata partitions were not copied: "
                f"{_listed(missing)}; copy their folders as well, or ask about partitions whose "
                f"metadata is here{doubt}"
            )
            raise NotReady(msg, reason=ABSENT, metadata_partition=missing[0])
        await self.log.compare(asked)
        moment = await self._states.moment(asked, progress=progress)
        doubts = self._notes if self._is_doubtful else []
        self._states.tell(
            [*doubts, *self._judge_count(), *self.log.notes, *self._states.not_understood()]
        )
        return moment

    async def close(self) -> None:
        await self.log.close()
        if self.cluster is not None:
            await self.cluster.close()


def _listed(places: Sequence[int]) -> str:
    """Return numbers for a message, cut if there are many."""
    shown = ", ".join(map(str, places[:_NAMED_MAX]))
    return shown if len(places) <= _NAMED_MAX else f"{shown} and {len(places) - _NAMED_MAX} more"


_WHOLE: Final = 1 << 31
"""A topic of so many partitions shows Kafka's hash as it is, whatever the number is really."""


def fitting_count(
    found: Iterable[tuple[TopicIdPartition, int]],
    least: int,
    first: int | None = PARTITION_COUNT,
) -> int | None:
    """
    Return the count that places each partition where it was *found*, at least *least*. *first*,
    Kafka's default, is preferred, else the smallest that fits, because a count that is too small
    hides missing partitions, while one that is too large shows them. None if none fits.
    """
    hashes = {
        (metadata_partition_for(one.topic_id, one.partition, _WHOLE), place) for one, place in found
    }
    for count in chain((first or least,), range(least, PARTITION_COUNT_MAX + 1)):
        if count >= least and all(number % count == place for number, place in hashes):
            return count
    return None
