"""
The engine that a run tests: `RLMM_ENGINE=python` or `native`; without it the one that `auto` takes.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from rlmm.base.native_core import EXTENSION, VARIABLE, ShardEngine, choose_engine
from rlmm.metadata.engines import shard_type

__all__ = ["IS_NATIVE", "ChosenShard", "environ_without_settings", "needs_native"]

if TYPE_CHECKING:
    from rlmm.metadata.python_shard import PythonShard as ChosenShard
else:
    ChosenShard = shard_type(ShardEngine(os.environ.get(VARIABLE, "auto")))

IS_NATIVE = ChosenShard is not shard_type(ShardEngine.PYTHON)
# What says nothing of its engine takes this one, too.
choose_engine(ShardEngine.NATIVE if IS_NATIVE else ShardEngine.PYTHON)

needs_native = pytest.mark.skipif(
    find_spec(EXTENSION) is None and "CI" not in os.environ,
    reason="the native core is not built: `make native` builds it, with cargo",
)


def environ_without_settings() -> dict[str, str]:
    """The variables of this process without settings of rlmm, but for the engine."""
    return {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("RLMM_") or name == VARIABLE
    }
