"""The package as its reader meets it."""

from __future__ import annotations

import pkgutil
import re

import spark_tiering.segment_reading


def test_package_when_its_docstring_is_read_then_every_module_is_named() -> None:
    """The map of the package is whole: each module stands in it, and nothing that is not there."""
    told = spark_tiering.segment_reading.__doc__ or ""
    named = re.findall(r"^ {4}(\w+) {2,}\S", told, re.MULTILINE)
    assert sorted(named) == [
        found.name for found in pkgutil.iter_modules(spark_tiering.segment_reading.__path__)
    ]
