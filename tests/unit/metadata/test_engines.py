"""Which implementation of the shard is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError
from rlmm.metadata.engines import ShardEngine, shard_type
from rlmm.metadata.python_shard import PythonShard

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def without_core(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    shard_type.cache_clear()
    monkeypatch.setattr("rlmm.metadata.engines.find_spec", lambda _: None)
    yield
    shard_type.cache_clear()


@pytest.mark.usefixtures("without_core")
def test_a_process_without_the_core_uses_python_unless_the_core_is_asked_for() -> None:
    """Without the extension `auto` is Python, and `native` is an error."""
    assert shard_type() is PythonShard
    assert shard_type(ShardEngine.PYTHON) is PythonShard
    with pytest.raises(ConfigError, match=r"rlmm-native is not installed"):
        shard_type(ShardEngine.NATIVE)


def test_a_process_with_the_core_uses_it() -> None:
    """With the extension `auto` is the native engine."""
    pytest.importorskip("rlmm_native", reason="the native core is not built")
    shard = shard_type()(3)
    assert type(shard) is not PythonShard
    assert shard_type(ShardEngine.NATIVE) is type(shard)
    assert shard_type(ShardEngine.PYTHON) is PythonShard
