"""Which implementation of the shard is used: the one in Python, or the native core."""

from __future__ import annotations

from rlmm.base.native_core import ShardEngine, engine_in_use
from rlmm.metadata.python_shard import PythonShard


def shard_type(engine: ShardEngine | None = None) -> type[PythonShard]:
    """
    Return the class of shards of *engine*, by default of the one that the process chose. Raises
    `ConfigError` where that is the native core and it cannot be used.
    """
    if engine_in_use(engine).name is ShardEngine.PYTHON:
        return PythonShard
    from rlmm.metadata.native_shard import NativeShard  # noqa: PLC0415 - it may not be installed

    return NativeShard
