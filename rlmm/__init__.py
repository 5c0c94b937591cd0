"""
Holds and answers the metadata of Kafka's tiered storage, the topic `__remote_log_metadata`.

`rlmm.open` is the library, see `rlmm.library.remote_log_metadata`. Heavy modules
are imported at their first use: `import rlmm` costs nothing and gives the version.

- `access`: Clients and their rights.
- `base`: Helpers that every package may use.
- `broker_files`: A broker's log folders, served by HTTP to be read only.
- `cli`: The command line.
- `config`: Every setting of the service, its default and its reason.
- `engine`: The engine of one cluster, made of a log, the pump, the gate and snapshots.
- `errors`: Every error of rlmm, in one tree.
- `findings`: Findings with their severity.
- `gate`: The gate that answers queries from partitions that are ready.
- `http`: The HTTP server for people and their tools.
- `inspection`: Queries on the tiered state.
- `kafka_client`: A client of Kafka clusters.
- `kafka_messages`: Kafka's requests and responses, as bytes and as values.
- `library`: `rlmm.open` for programs, on an event loop and for threads.
- `log`: The log of events.
- `metadata`: Kafka's remote log metadata: events and state machine.
- `metrics`: The metrics for Prometheus.
- `partition_log`: A log of record batches on disk in Kafka's own form, one folder for each
  partition.
- `process`: The process that `rlmm serve` runs.
- `pump`: The pump that reads the log and applies events.
- `records`: Kafka's record batches, format v2, as a fetch returns them and as a `.log` file holds
  them.
- `retention`: Kafka's retention.
- `sidecar`: The frame server.
- `snapshot`: Snapshots.
- `state_sources`: Sources of the tiered state for commands.
- `telemetry`: The log lines of the service.
- `views`: The answers that people are shown.
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
