"""Which implementation of the shard is used."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from rlmm.base import native_core
from rlmm.base.native_core import (
    EngineIdentity,
    ShardEngine,
    choose_engine,
    engine_in_use,
    engine_named,
    native_obstacle,
)
from rlmm.base.version import __version__
from rlmm.errors import ConfigError
from rlmm.metadata.engines import shard_type
from rlmm.metadata.python_shard import PythonShard
from tests.support.engine.chosen import needs_native

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def engine_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(native_core, "_PROCESS", native_core._Process())
    native_obstacle.cache_clear()
    yield
    native_obstacle.cache_clear()


@pytest.fixture
def without_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rlmm_native", None)  # Python then finds no such module


@pytest.mark.usefixtures("without_core")
def test_a_process_without_the_core_uses_python_unless_the_core_is_asked_for() -> None:
    """Without the extension `auto` is Python, and `native` is an error."""
    assert shard_type() is PythonShard
    assert shard_type(ShardEngine.PYTHON) is PythonShard
    with pytest.raises(ConfigError, match=r"^engine = native: rlmm-native is not installed; pip "):
        shard_type(ShardEngine.NATIVE)


@pytest.mark.usefixtures("without_core")
def test_fallback_when_the_core_is_missing_then_says_so() -> None:
    """What is shown of the engine says why it is not the native one."""
    found = engine_in_use()
    assert str(found) == f"python {__version__} (rlmm-native is not installed)"
    assert found.is_missing
    assert str(engine_in_use(ShardEngine.PYTHON)) == f"python {__version__}"


def test_core_of_another_version_then_is_not_used_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A core of another version than rlmm's is not used."""
    other = ModuleType("rlmm_native")
    other.__version__ = "0.0.9"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rlmm_native", other)
    words = f"rlmm-native 0.0.9 is installed, and rlmm needs {__version__}"
    assert engine_in_use() == EngineIdentity(ShardEngine.PYTHON, __version__, words)
    assert shard_type() is PythonShard
    with pytest.raises(ConfigError, match=words):
        engine_in_use(ShardEngine.NATIVE)


def test_core_that_cannot_be_loaded_then_is_not_used_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A core that was built for another machine is not used."""

    def refuse(_name: str) -> ModuleType:
        raise ImportError("libgone.so.1:\nno such file")

    monkeypatch.setattr(native_core, "import_module", refuse)
    assert engine_in_use().obstacle == "rlmm-native cannot be loaded: libgone.so.1: no such file"
    assert not engine_in_use().is_missing
    with pytest.raises(ConfigError, match=r"cannot be loaded"):
        engine_in_use(ShardEngine.NATIVE)


@needs_native
def test_a_process_with_the_core_uses_it() -> None:
    """With the extension `auto` is the native engine."""
    shard = shard_type()(3)
    assert type(shard) is not PythonShard
    assert shard_type(ShardEngine.NATIVE) is type(shard)
    assert shard_type(ShardEngine.PYTHON) is PythonShard
    assert str(engine_in_use()) == f"native {__version__}"


def test_choice_of_the_process_then_holds_where_nothing_else_is_said() -> None:
    """A call that names no engine takes the one that the process chose."""
    choose_engine(ShardEngine.PYTHON)
    assert shard_type() is PythonShard
    assert engine_in_use() == EngineIdentity(ShardEngine.PYTHON, __version__)
    assert engine_in_use(ShardEngine.AUTO) != engine_in_use(), "it says more, or is the core"


def test_name_of_no_engine_then_is_refused_with_those_there_are() -> None:
    """The error lists the names of engines."""
    assert engine_named("native") is ShardEngine.NATIVE
    with pytest.raises(ConfigError, match=r"^RLMM_ENGINE must be one of auto, python, native, got"):
        engine_named("rust", "RLMM_ENGINE")
