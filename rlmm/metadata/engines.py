"""
Which implementation is used: the one in Python, or the native core. The choice is one for shards
and for walks over record batches.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from importlib.util import find_spec

from rlmm.errors import ConfigError
from rlmm.metadata.python_shard import PythonShard

EXTENSION = "rlmm_native"


class ShardEngine(StrEnum):
    AUTO = "auto"
    """The native core where it is installed."""
    PYTHON = "python"
    NATIVE = "native"


@cache
def shard_type(engine: ShardEngine = ShardEngine.AUTO) -> type[PythonShard]:
    """Return the class of shards. Raises `ConfigError` where the native core is missing."""
    if engine is ShardEngine.PYTHON:
        return PythonShard
    if find_spec(EXTENSION) is None:
        if engine is ShardEngine.AUTO:
            return PythonShard
        msg = "engine = native: rlmm-native is not installed; pip install 'rlmm[native]'"
        raise ConfigError(msg)
    from rlmm.metadata.native_shard import NativeShard  # noqa: PLC0415 - it may not be installed

    return NativeShard


def uses_core(engine: ShardEngine = ShardEngine.AUTO) -> bool:
    """Return whether the native core is used; raises as `shard_type` does."""
    return shard_type(engine) is not PythonShard
