"""Shards of the pure-Python engine of one log; they share only the limit of kept orders."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rlmm.metadata.kept_orders import KeptOrders
from rlmm.metadata.python_shard import PythonShard

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.shard import Shard


def python_shards() -> Callable[[int, int], Shard]:
    return partial(PythonShard, kept_orders=KeptOrders())
