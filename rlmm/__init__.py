"""
Holds and answers the metadata of Kafka's tiered storage, the topic `__remote_log_metadata`.

`rlmm.open` is the library, see `rlmm.library.remote_log_metadata`. Nothing heavy is imported before
it is asked for: `import rlmm` costs nothing and gives the version.

Nothing imports it.

- `access`: Who is asking, and what they may.
- `base`: What every package may use.
- `broker_files`: A broker's log folders, served by HTTP to be read only.
- `cli`: The command line.
- `config`: Every setting of the service, its default and its reason.
- `engine`: The engine of one cluster, made of a log, the pump, the gate and snapshots.
- `errors`: Every error of rlmm, in one tree.
- `findings`: Findings.
- `gate`: The gate.
- `http`: What people and their tools reach.
- `inspection`: Looking into the tiered state.
- `kafka_client`: A client of Kafka clusters.
- `kafka_messages`: Kafka's requests and responses, as bytes and as values.
- `library`: `rlmm.open` for programs, on an event loop and for threads.
- `log`: The log that the events live in.
- `metadata`: What Kafka means by remote log metadata.
- `metrics`: What Prometheus is shown.
- `partition_log`: A log of record batches on disk in Kafka's own form, one folder for each
  partition.
- `process`: The process that `rlmm serve` runs.
- `pump`: The pump.
- `records`: Kafka's record batches, format v2, as a fetch returns them and as a `.log` file holds
  them.
- `retention`: Kafka's retention.
- `sidecar`: The frame server.
- `snapshot`: Snapshots.
- `state_sources`: Where the tiered state is looked at.
- `telemetry`: What the service says of itself while it runs.
- `views`: What people are shown.
- `wire`: The frame protocol between a broker and the service.

Nothing imports it.
"""

from typing import TYPE_CHECKING, Any

import rlmm.base.old_names  # noqa: F401  # modules that moved stay importable
from rlmm.base.version import __version__

if TYPE_CHECKING:
    from rlmm.library.remote_log_metadata import open_metadata as open  # noqa: A004  # rlmm.open is meant

__all__ = ["__version__", "open"]


def __getattr__(name: str) -> Any:
    """Import the library when it is first asked for."""
    if name == "open":
        from rlmm.library.remote_log_metadata import open_metadata  # noqa: PLC0415

        return open_metadata
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
