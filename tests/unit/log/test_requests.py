"""The arguments that every log and every wait refuses."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rlmm.errors import ConfigError, InvalidArgument
from rlmm.log.request_checks import PARTITION_COUNT_MAX, require_count, require_timeout


@pytest.mark.parametrize("count", [0, -1, PARTITION_COUNT_MAX + 1, True, 2.5, "4"], ids=repr)
def test_count_when_no_topic_has_so_many_then_is_refused(count: Any) -> None:
    """A log with no partition, or with millions, is a slip that a folder would keep for ever."""
    with pytest.raises(ConfigError, match="has 1 to 100000 partitions"):
        require_count(count)


@pytest.mark.parametrize("count", [None, 1, PARTITION_COUNT_MAX])
def test_count_when_a_topic_can_have_it_then_is_taken(count: int | None) -> None:
    """Unset is any, or the default."""
    require_count(count)


@pytest.mark.parametrize("timeout_s", [0, -1, math.nan, math.inf, True, "1", None], ids=repr)
def test_timeout_when_it_is_no_wait_or_has_no_end_then_is_refused(timeout_s: Any) -> None:
    """Every wait needs a positive and finite timeout."""
    with pytest.raises(InvalidArgument, match="seconds above 0"):
        require_timeout(timeout_s)


@pytest.mark.parametrize("timeout_s", [0.001, 1, 3600.0])
def test_timeout_when_it_can_be_waited_for_then_is_taken(timeout_s: float) -> None:
    """Whole numbers and others."""
    assert require_timeout(timeout_s) == timeout_s
