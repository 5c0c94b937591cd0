"""Settings of answering. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from rlmm.base.whole_numbers import require_whole_numbers
from rlmm.errors import ConfigError


@dataclass(frozen=True, slots=True)
class GateSettings:
    retry_after_ms: int = 1_000
    """Hint in a refusal: brokers ask again at once otherwise, thousands of times a second."""
    retry_after_ms_max: int = 10_000
    """Longest hint, where much is left to be read."""
    wait_timeout_ms: int = 5_000
    """Longest wait of a read for an offset, where the caller names none: below the request time-out
    of every Kafka client."""
    waiting_max: int = 10_000
    """Reads that wait at a time; one more is refused at once."""

    def __post_init__(self) -> None:
        require_whole_numbers("gate.", self)
        if self.retry_after_ms_max < self.retry_after_ms:
            msg = (
                f"gate.retry_after_ms_max must not be below gate.retry_after_ms, "
                f"got {self.retry_after_ms_max} and {self.retry_after_ms}"
            )
            raise ConfigError(msg)
