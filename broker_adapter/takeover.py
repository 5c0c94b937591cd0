"""
What a client does when another start of its broker has taken over.

It says so in the log, each time; tries again a few times, since a service that was started anew
may see it differently; and then gives up for good, so that two processes with one broker id do not
go on side by side. Invariant: who has given up says why to whoever asks.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rlmm.errors import Superseded

if TYPE_CHECKING:
    from broker_adapter.address import Address
    from broker_adapter.statistics import ClientCounters

_log = logging.getLogger(__name__)


class BrokerTakeover:
    """Counts how often in a row the service refused this start of the broker."""

    def __init__(self, address: Address, times_max: int, figures: ClientCounters) -> None:
        self._address = address
        self._times_max = times_max
        self._figures = figures
        self._times = 0

    @property
    def is_final(self) -> bool:
        """Whether the client gives up."""
        return self._times >= self._times_max

    def heard(self, error: Superseded) -> Superseded:
        """Count that another start has taken over; return the error of every later call."""
        self._times += 1
        self._figures.superseded += 1
        if not self.is_final:
            _log.warning("at %s this broker's place is taken: %s", self._address, error)
            return Superseded(str(error))
        self._figures.has_given_up = True
        msg = f"{error}. Given up after it was said {self._times} times: a new client is needed"
        _log.error("at %s this broker's place is taken: %s", self._address, msg)
        return Superseded(msg)

    def refuted(self) -> None:
        """The service accepts this start again."""
        self._times = 0
