"""The package as its reader meets it."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys

import spark_tiering.engines


def test_package_when_its_docstring_is_read_then_every_module_is_named() -> None:
    """The map of the package is whole: each module stands in it, and nothing that is not there."""
    named = re.findall(r"^ {4}(\w+) {2,}\S", spark_tiering.engines.__doc__ or "", re.MULTILINE)
    assert sorted(named) == [
        found.name for found in pkgutil.iter_modules(spark_tiering.engines.__path__)
    ]


def test_engine_in_this_process_when_opened_then_spark_is_not_imported() -> None:
    """Who runs units here needs neither Spark nor the time to import it."""
    script = (
        "import sys; from spark_tiering.engines.opening import open_engine;"
        "from spark_tiering.engines.settings import EngineSettings;"
        "engine = open_engine(EngineSettings());"
        "assert engine.run_units([3, 4], abs) == [3, 4]; assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
