"""
The native core, the extension of `rlmm-native`: whether this process uses it, and if not, why.

The choice belongs to the process. A command makes it at its start, before any state is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import Final

from rlmm.base.version import __version__
from rlmm.errors import ConfigError

EXTENSION: Final = "rlmm_native"
VARIABLE: Final = "RLMM_ENGINE"


class ShardEngine(StrEnum):
    AUTO = "auto"
    """The native core where it is installed in the version of rlmm, else Python."""
    PYTHON = "python"
    NATIVE = "native"


@dataclass(frozen=True, slots=True)
class EngineIdentity:
    name: ShardEngine
    """The engine itself, `python` or `native`: never `auto`."""
    version: str
    obstacle: str = ""
    """Why `auto` is not the native core; empty where it is, or where Python was chosen."""
    is_missing: bool = False
    """Whether the obstacle is only that the native core is not installed."""

    @property
    def pair(self) -> tuple[str, str]:
        """Return name and version, as they are shown."""
        return self.name.value, self.version

    def __str__(self) -> str:
        beside = f" ({self.obstacle})" if self.obstacle else ""
        return f"{self.name} {self.version}{beside}"


class _Process:
    engine = ShardEngine.AUTO


_PROCESS: Final = _Process()


def choose_engine(engine: ShardEngine) -> None:
    """Have this process use *engine* for all that it builds from now on; nothing is loaded yet."""
    _PROCESS.engine = engine


def engine_named(name: str, of: str = "engine") -> ShardEngine:
    """Return the engine of that name; raises `ConfigError`, which says *of* what it was given."""
    if name not in set(ShardEngine):
        msg = f"{of} must be one of {', '.join(ShardEngine)}, got {name!r}"
        raise ConfigError(msg)
    return ShardEngine(name)


def engine_in_use(engine: ShardEngine | None = None) -> EngineIdentity:
    """
    Return what *engine* is here, by default the one that the process chose. Raises `ConfigError`
    where the native core was chosen and cannot be used.
    """
    chosen = _PROCESS.engine if engine is None else engine
    if chosen is ShardEngine.PYTHON:
        return EngineIdentity(ShardEngine.PYTHON, __version__)
    obstacle, is_missing = native_obstacle()
    if not obstacle:
        return EngineIdentity(ShardEngine.NATIVE, __version__)
    if chosen is ShardEngine.AUTO:
        return EngineIdentity(ShardEngine.PYTHON, __version__, obstacle, is_missing)
    msg = f"engine = native: {obstacle}; pip install 'rlmm[native]'"
    raise ConfigError(msg)


def uses_core(engine: ShardEngine | None = None) -> bool:
    """Return whether *engine* is the native core here; raises as `engine_in_use` does."""
    return engine_in_use(engine).name is ShardEngine.NATIVE


@cache
def native_obstacle() -> tuple[str, bool]:
    """Return why the core cannot be used, empty if it can, and whether it is only missing."""
    try:
        found = getattr(import_module(EXTENSION), "__version__", "of no version")
    except ModuleNotFoundError:
        return "rlmm-native is not installed", True
    except ImportError as error:  # of another machine, or of another Python
        return f"rlmm-native cannot be loaded: {' '.join(str(error).split())}", False
    if found != __version__:
        return f"rlmm-native {found} is installed, and rlmm needs {__version__}", False
    return "", False
