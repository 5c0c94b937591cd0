"""
How far the next micro-batch of a stream goes, in offsets, as Spark's Kafka source counts. Pure.

    {"orders": {"0": 1500, "1": 1498}}      # what a checkpoint keeps: next offsets
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlmm.errors import ConfigError
from rlmm.metadata.ids import INT64_MAX
from spark_tiering.data_source.bounds import PartitionName

if TYPE_CHECKING:
    from collections.abc import Mapping

Offsets = dict[PartitionName, int]


def format_offsets(offsets: Mapping[PartitionName, int]) -> dict[str, dict[str, int]]:
    """What is kept in a checkpoint; equal offsets are written alike."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def parse_offsets(written: Any) -> Offsets:
    """Offsets out of a checkpoint; raises `ConfigError` where they are another source's."""
    offsets: Offsets = {}
    try:
        for topic, by_number in written.items():
            for number, offset in by_number.items():
                if type(offset) is not int or not 0 <= offset <= INT64_MAX:
                    raise ValueError  # noqa: TRY301 - told in one place
                offsets[PartitionName(topic, int(number))] = offset
    except (AttributeError, TypeError, ValueError) as error:
        msg = f"the checkpoint is no reader's of this source: {str(written)[:200]}"
        raise ConfigError(msg) from error
    return offsets


def available(start: Offsets, latest: Offsets) -> int:
    """How many offsets there are between the two."""
    return sum(max(0, latest[one] - start.get(one, latest[one])) for one in latest)


def step(start: Offsets, latest: Offsets, most: int | None) -> Offsets:
    """
    How far to go from *start*, where *latest* is all that there is: at most *most* offsets, shared
    out by how many each partition has, one at least to each that has any while there are some left.

    A partition of *latest* that *start* does not know begins nowhere: it has to be put there first.
    What is gone from *latest* stays where it was.
    """
    ahead = {one: max(0, latest[one] - start[one]) for one in start if one in latest}
    total = sum(ahead.values())
    if most is None or total <= most:
        return {one: start[one] + ahead.get(one, 0) for one in start}
    taken, left = {}, most
    # The last ones would get nothing of a small rest if it always began with the same partition.
    for one, behind in sorted(ahead.items(), key=lambda item: (-item[1], item[0])):
        share = min(behind, left, max(1, most * behind // total)) if behind else 0
        taken[one] = share
        left -= share
    for one, behind in sorted(ahead.items()):
        more = min(left, behind - taken[one])
        taken[one] += more
        left -= more
    return {one: start[one] + taken.get(one, 0) for one in start}


class TriggerPatience:
    """Whether a batch begins though there is little to read. *now_ms* of every question rises."""

    def __init__(self, least: int | None, delay_ms: int) -> None:
        self._least = least
        self._delay_ms = delay_ms
        self._since_ms: int | None = None

    def is_over(self, waiting: int, now_ms: int) -> bool:
        """Whether *waiting* offsets are enough by now."""
        if self._since_ms is None:
            self._since_ms = now_ms
        is_over = (
            self._least is None
            or waiting >= self._least
            or now_ms - self._since_ms >= self._delay_ms
        )
        if is_over:
            self._since_ms = now_ms
        return is_over
