"""The package as its reader meets it."""

from __future__ import annotations

import pickle
import pkgutil
import re

import spark_tiering.plan
from tests.support.plans import example_plan


def test_package_when_its_docstring_is_read_then_every_module_is_named() -> None:
    """The map of the package is whole: each module stands in it, and nothing that is not there."""
    named = re.findall(r"^ {4}(\w+) {2,}\S", spark_tiering.plan.__doc__ or "", re.MULTILINE)
    assert sorted(named) == [
        found.name for found in pkgutil.iter_modules(spark_tiering.plan.__path__)
    ]


def test_plan_when_sent_to_another_process_then_stays_what_it_is() -> None:
    """What a task is given is cut from a plan."""
    plan = example_plan()
    assert pickle.loads(pickle.dumps(plan)) == plan
