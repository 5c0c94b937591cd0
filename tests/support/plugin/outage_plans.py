"""The order of outages, drawn from a seed. Pure."""

from __future__ import annotations

import enum
import random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Outage(enum.Enum):
    SIDECAR_KILLED = "the service killed"
    SIDECAR_STOPPED = "the service stopped"
    SIDECAR_EMPTIED = "the service killed, its folder deleted"
    BROKER_STOPPED = "the broker stopped"
    BROKER_KILLED = "the broker killed"
    BOTH_KILLED = "both killed"

    @property
    def ends_broker(self) -> bool:
        """Return whether the broker, and with it the metadata topic, goes down."""
        return self in {Outage.BROKER_STOPPED, Outage.BROKER_KILLED, Outage.BOTH_KILLED}

    @property
    def ends_sidecar(self) -> bool:
        return self not in {Outage.BROKER_STOPPED, Outage.BROKER_KILLED}


SIDECAR_OUTAGES = (Outage.SIDECAR_KILLED, Outage.SIDECAR_STOPPED, Outage.SIDECAR_EMPTIED)
BROKER_OUTAGES = (Outage.BROKER_STOPPED, Outage.BROKER_KILLED, Outage.BOTH_KILLED)


class Moment(enum.Enum):
    COPY_BEGUN = "copies begun"
    OBJECT_WRITTEN = "objects written"
    COPY_FINISHED = "copies finished"
    RECORD_READ = "records read"
    RECORD_WRITTEN = "records written"
    ANSWER_OWED = "copies whose event the service has not answered"


MOST = dict.fromkeys(Moment, 3) | {
    Moment.RECORD_READ: 40,
    Moment.RECORD_WRITTEN: 40,
    Moment.ANSWER_OWED: 1,
}


class Step(NamedTuple):
    outage: Outage
    moment: Moment
    after: int
    missed: int
    """Records that are written before the service comes back; where the broker is away, none."""
    is_waited_for: bool
    """Whether all is well again before the next outage comes."""


def plan(seed: int, count: int, outages: Sequence[Outage] = SIDECAR_OUTAGES[:1]) -> list[Step]:
    """Return *count* steps with equal shares of *outages*; the last one is waited for."""
    chance = random.Random(seed)
    kinds: list[Outage] = []
    moments: list[Moment] = []
    while len(kinds) < count:
        kinds += chance.sample(list(outages), len(outages))
    while len(moments) < count:
        moments += chance.sample(list(Moment), len(Moment))
    return [
        Step(
            outage,
            moment,
            chance.randint(1, MOST[moment]),
            chance.choice([0, 30, 60]),
            number == count - 1 or chance.random() < 0.7,
        )
        for number, (outage, moment) in enumerate(zip(kinds[:count], moments[:count], strict=True))
    ]
