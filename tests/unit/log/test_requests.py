"""The arguments that every log and every wait refuses."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rlmm.errors import ConfigError, InvalidArgument
from rlmm.log.request_checks import PARTITION_COUNT_MAX, require_count, require_timeout


@pytest.mark.parametrize("count", [0, -1, PARTITION_COUNT_MAX + 1, True, 2.5, "4"], ids=repr)
def test_count_when_no_topic_has_so_many_then_is_refused(count: Any) -> None:
    """A log with no partition, or with millions, is a slip; unset is any, or the default."""
    with pytest.raises(ConfigError, match="has 1 to 100000 partitions"):
        require_count(count)
    for possible in (None, 1, PARTITION_COUNT_MAX):
        require_count(possible)


@pytest.mark.parametrize("timeout_s", [0, -1, math.nan, math.inf, True, "1", None], ids=repr)
def test_timeout_when_it_is_no_wait_or_has_no_end_then_is_refused(timeout_s: Any) -> None:
    """Every wait needs a positive and finite timeout, a whole number or not."""
    with pytest.raises(InvalidArgument, match="seconds above 0"):
        require_timeout(timeout_s)
    for possible in (0.001, 1, 3600.0):
        assert require_timeout(possible) == possible
