"""The package as its reader meets it."""

from __future__ import annotations

import pickle
import pkgutil
import re
from dataclasses import replace

import spark_tiering.layout
from spark_tiering.layout.fetching import plan_log_fetches
from spark_tiering.layout.findings import LayoutFinding
from spark_tiering.layout.making import LogObject
from tests.support.tiered_segments import DESCRIBED, NOTE, plain_manifest, zstd_manifest


def test_package_when_its_docstring_is_read_then_every_module_is_named() -> None:
    """The map of the package is whole: each module stands in it, and nothing that is not there."""
    named = re.findall(r"^ {4}(\w+) {2,}\S", spark_tiering.layout.__doc__ or "", re.MULTILINE)
    assert sorted(named) == [
        found.name for found in pkgutil.iter_modules(spark_tiering.layout.__path__)
    ]


def test_values_when_sent_to_another_process_stay_what_they_are() -> None:
    """What a task makes is given back to who gave the task, and what is planned to who does it."""
    log = LogObject([bytes(1000)], 1000, is_compressed=True, chunk_bytes=300)
    assert sum(map(len, log)) > 0
    planned = plan_log_fetches(zstd_manifest())
    assert not isinstance(planned, LayoutFinding)
    for value in (
        log.made,
        plain_manifest(),
        replace(zstd_manifest(), described=replace(DESCRIBED, note=NOTE)),
        list(planned),
    ):
        assert pickle.loads(pickle.dumps(value)) == value
