"""
Engines by name, as the command line gives them: `python`, `model`, `exec:COMMAND`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import ConfigError
from rlmm_conformance.exec_engine import ANSWER_TIMEOUT_MS, ExecEngine
from rlmm_conformance.model_engine import ModelEngine
from rlmm_conformance.python_engine import PythonEngine
from rlmm_conformance.rules import ConformanceRule

if TYPE_CHECKING:
    from rlmm_conformance.engine import EngineUnderTest

ENGINES = ("python", "model", "exec:COMMAND")

_EXEC = "exec:"


def open_engine(name: str, answer_timeout_ms: int = ANSWER_TIMEOUT_MS) -> EngineUnderTest:
    """Return the engine that *name* means; raises `ConfigError` or `EngineFailed`."""
    if name.startswith(_EXEC):
        return ExecEngine(name.removeprefix(_EXEC), answer_timeout_ms)
    if name == "python":
        return PythonEngine()
    if name == "model":
        return ModelEngine(frozenset({ConformanceRule.KAFKA_20932}))
    raise ConfigError(f"no engine {name!r}: choose one of {', '.join(ENGINES)}")
