"""Imports that a start does without, made behind it in a thread: so no request waits for one."""

from __future__ import annotations

import asyncio
import importlib
from functools import partial
from typing import TYPE_CHECKING, Final

from rlmm.base.threads import in_own_thread

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm.config.sections import Config

LATER: Final = ("aiokafka.record.default_records", "rlmm.metrics.page")
"""For batches of several records and for appends; for scrapes."""
OF_KAFKA: Final = "rlmm.log.kafka.kafka_log"
"""For a cluster that a broker reports."""


def later_names(config: Config) -> tuple[str, ...]:
    return LATER if config.kafka is None else (*LATER, OF_KAFKA)


async def import_later(names: Iterable[str], after: asyncio.Event) -> None:
    """Import the modules *names* once *after* is set, and wait for the end of the process."""
    await after.wait()
    for name in names:
        await in_own_thread("imports", partial(importlib.import_module, name))
    await asyncio.Event().wait()
