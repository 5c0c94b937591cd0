"""
The `memory` log: the metadata topic in memory, for tests and trials.

May be imported by `rlmm.engine`, `spark_tiering.tier_metadata`.

- `memory_log`: The `memory` log.
- `partition`: A partition of a topic in memory.
- `script`: Events of a topic in memory, step by step, for a test or a trial.
- `topic`: A metadata topic in memory, which several logs may open.
"""

from typing import TYPE_CHECKING

from rlmm.base.old_names import attributes_of

if not TYPE_CHECKING:
    __getattr__ = attributes_of(__name__)
