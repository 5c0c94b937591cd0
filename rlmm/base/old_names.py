"""
Old names: each name of README, docs and examples that moved, under its old name for one version.

An imported old module gives its successor's attributes and a `DeprecationWarning` that names the
new place. Python asks this finder last, so other imports cost nothing.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

MODULES: Final = {
    "broker_adapter.translate": "broker_adapter.kafka_exceptions",
    "rlmm.cli.demo": "rlmm_demo",
    "rlmm.cli.demo.small_broker": "rlmm_demo.world.small_broker",
    "rlmm.engines": "rlmm.engine.service",
    "rlmm.log.script": "rlmm.log.memory.script",
    "rlmm.metadata.codec": "rlmm.metadata",
    "rlmm.sources": "rlmm.state_sources",
    "rlmm.sources.settings": "rlmm.state_sources.settings",
    "spark_tiering.care": "spark_tiering.maintenance",
    "spark_tiering.care.opening": "spark_tiering.maintenance.wiring",
    "spark_tiering.care.request": "spark_tiering.maintenance.tier",
    "spark_tiering.coverage": "spark_tiering.copy_plan.lineage",
    "spark_tiering.engines": "spark_tiering.execution",
    "spark_tiering.engines.opening": "spark_tiering.execution.opening",
    "spark_tiering.engines.protocol": "spark_tiering.execution.protocol",
    "spark_tiering.engines.settings": "spark_tiering.execution.settings",
    "spark_tiering.frozen": "spark_tiering.read_plan",
    "spark_tiering.frozen.moments": "spark_tiering.read_plan.moments",
    "spark_tiering.frozen.question": "spark_tiering.read_plan.question",
    "spark_tiering.frozen.tier_plans": "spark_tiering.read_plan.tier_plans",
    "spark_tiering.keys": "spark_tiering.layout.object_names",
    "spark_tiering.layout.manifest_reading": "spark_tiering.layout.manifest_document",
    "spark_tiering.plan": "spark_tiering.copy_plan",
    "spark_tiering.plan.reasons": "spark_tiering.copy_plan.reasons",
    "spark_tiering.plan.summary": "spark_tiering.copy_plan.summary",
    "spark_tiering.run": "spark_tiering.copy_job",
    "spark_tiering.run.job": "spark_tiering.copy_job.job",
    "spark_tiering.run.request": "spark_tiering.copy_job.request",
    "spark_tiering.run.surroundings": "spark_tiering.copy_job.wiring",
    "spark_tiering.sources": "spark_tiering.segment_sources",
    "spark_tiering.sources.settings": "spark_tiering.segment_sources.settings",
    "spark_tiering.work": "spark_tiering.executor",
}
NAMES: Final = {
    "rlmm.log.files": {"FilesLog": "rlmm.log.files.files_log.FilesLog"},
    "rlmm.log.memory": {"MemoryLog": "rlmm.log.memory.memory_log.MemoryLog"},
    "rlmm.metadata.codec": {
        "decode": "rlmm.metadata.decoding.decode",
        "encode": "rlmm.metadata.encoding.encode",
    },
    "spark_tiering.decoding": {"Wanted": "spark_tiering.decoding.options.DecodingOptions"},
    "spark_tiering.engines.settings": {
        "EngineSettings": "spark_tiering.execution.settings.ExecutionSettings"
    },
    "spark_tiering.frozen.question": {"Bounds": "spark_tiering.read_plan.question.RecordBounds"},
    "spark_tiering.plan.reasons": {"Mode": "spark_tiering.copy_plan.reasons.CopyMode"},
}
"""Module -> its attributes that have another name, or another module, than its successor's."""


def attribute(module: str, name: str) -> Any:
    """Return the present object for *name* of an old module, or of one that kept its name."""
    new = NAMES.get(module, {}).get(name)
    if new is not None:
        _warn(f"{module}.{name}", new)
        home, _, name = new.rpartition(".")
        return getattr(import_module(home), name)
    if module in MODULES and not name.startswith("__"):
        return getattr(import_module(MODULES[module]), name)
    msg = f"module {module!r} has no attribute {name!r}"
    raise AttributeError(msg)


def attributes_of(module: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module that lost some names."""
    return partial(attribute, module)


def _warn(old: str, new: str) -> None:
    text = f"{old} is deprecated, and ends with the next version: use {new}"
    warnings.warn(text, DeprecationWarning, stacklevel=3)


class _OldModules:
    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if name not in MODULES:
            return None
        is_package = any(module.startswith(f"{name}.") for module in MODULES)
        return ModuleSpec(name, _OldModules, is_package=is_package)  # type: ignore[arg-type]  # no base class is needed

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        del spec

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        _warn(module.__name__, MODULES[module.__name__])
        module.__dict__["__getattr__"] = attributes_of(module.__name__)


sys.meta_path.append(_OldModules)
