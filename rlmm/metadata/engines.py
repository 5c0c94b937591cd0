"""Which implementation of the shard is used: the one in Python, or the native core."""

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


preferred = ShardEngine.NATIVE
"""What `AUTO` takes where it can; the tests run on each."""


@cache
def shard_type(engine: ShardEngine = ShardEngine.AUTO) -> type[PythonShard]:
    """Return the class of shards. Raises `ConfigError` where the native core is missing."""
    if ShardEngine.PYTHON in (engine, preferred if engine is ShardEngine.AUTO else None):
        return PythonShard
    if find_spec(EXTENSION) is None:
        if engine is ShardEngine.AUTO:
            return PythonShard
        msg = "engine = native: rlmm-native is not installed; pip install 'rlmm[native]'"
        raise ConfigError(msg)
    from rlmm.metadata.native_shard import NativeShard  # noqa: PLC0415 - it may not be installed

    return NativeShard
