"""The table of paths: the parameters, the answer and the access rule of each. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rlmm.http.parameters import (
    CLUSTER,
    EPOCH,
    EPOCH_OR_ALL,
    FILE_NAME,
    FOLDER,
    FRESHNESS,
    OFFSET,
    PARTITION,
    SEGMENT_ID,
    TIMEOUT,
    VERBOSE,
    Parameter,
)


class AccessRule(StrEnum):
    EVERYBODY = "everybody"
    HEALTH = "health"
    METRICS = "metrics"
    READER = "reader"


@dataclass(frozen=True, slots=True)
class Route:
    path: str
    summary: str
    asks: AccessRule
    answer: str
    """Name of the schema of an answer with status 200."""
    parameters: tuple[Parameter, ...] = ()
    method: str = "GET"
    body: str | None = None
    """Name of the schema of the request body."""
    content_types: tuple[str, ...] = ("application/json",)
    also: tuple[int, ...] = ()
    """Statuses with an answer of the same form."""
    errors: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return self.path.strip("/").removeprefix("v1/").replace(".", "-").replace("/", "-")


PREFIX: Final = "/v1/"
NDJSON: Final = "application/x-ndjson"
BYTES: Final = "application/octet-stream"
BROKER_LOG: Final = PREFIX + "broker-log/"
_READ_ERRORS: Final = (400, 401, 403, 404, 421, 429, 503)
_FILE_ERRORS: Final = (400, 401, 403, 404, 429, 502, 503)


def _question(
    name: str, summary: str, answer: str, *parameters: Parameter, fresh: bool = True
) -> Route:
    takes = (*PARTITION, *parameters, *(FRESHNESS if fresh else ()), CLUSTER)
    return Route(PREFIX + name, summary, AccessRule.READER, answer, takes, errors=_READ_ERRORS)


ROUTES: Final = (
    Route(
        "/livez", "Whether the process works; 503: restart it.",
        AccessRule.HEALTH, "Liveness", also=(503,), errors=(400, 401, 403, 429),
    ),
    Route(
        "/readyz", "Whether all that is assigned is answered from; 503: not now, and why.",
        AccessRule.HEALTH, "Readiness", (VERBOSE,), also=(503,), errors=(400, 401, 403, 429),
    ),
    Route(
        "/startupz", "Whether all that is assigned was answered from at least once.",
        AccessRule.HEALTH, "Readiness", (VERBOSE,), also=(503,), errors=(400, 401, 403, 429),
    ),
    Route(
        "/metrics", "Figures for Prometheus; see docs/metrics.md.",
        AccessRule.METRICS, "Text", content_types=("text/plain", "application/openmetrics-text"),
        errors=(400, 401, 403, 429),
    ),
    Route("/openapi.json", "This document.", AccessRule.EVERYBODY, "Document", errors=(400,)),
    Route(
        PREFIX + "status", "How the process and its engines stand.",
        AccessRule.READER, "Status", (CLUSTER,), errors=(400, 401, 403, 404, 429, 503),
    ),
    Route(
        PREFIX + "read-token", "The offset of the last event applied, by metadata partition.",
        AccessRule.READER, "ReadToken", (CLUSTER,), errors=(400, 401, 403, 404, 429, 503),
    ),
    _question(
        "ready",
        "Whether questions about a user partition are answered; with `timeout_ms`, within that "
        "time.",
        "Ready", TIMEOUT, fresh=False,
    ),
    _question("segment", "The segment of an id, in any state.", "SegmentOrNone", SEGMENT_ID),
    _question(
        "segment-for", "The finished segment that holds an offset of a leader epoch.",
        "SegmentOrNone", EPOCH, OFFSET,
    ),
    Route(
        PREFIX + "segments-for", "An answer to each of many look-ups, in their order.",
        AccessRule.READER, "Answers", (*FRESHNESS, CLUSTER), method="POST", body="Lookups",
        errors=(400, 401, 403, 404, 408, 413, 421, 429, 503),
    ),
    _question(
        "next-segment-with-txn-index",
        "The first finished segment of a leader epoch from an offset on that may have aborted "
        "records.",
        "SegmentOrNone", EPOCH, OFFSET,
    ),
    _question(
        "highest-offset", "The largest offset of a leader epoch that any finished copy reached.",
        "HighestOffset", EPOCH,
    ),
    Route(
        PREFIX + "segments",
        "Every segment of a user partition, in whatever state, by rising start offset; one object "
        "a line where the client accepts " + NDJSON + ".",
        AccessRule.READER, "Segments", (*PARTITION, EPOCH_OR_ALL, *FRESHNESS, CLUSTER),
        content_types=("application/json", NDJSON), errors=_READ_ERRORS,
    ),
    _question("size", "Bytes of all segments.", "Size", EPOCH_OR_ALL),
    _question(
        "partition-delete", "How far the deletion of a user partition is.",
        "PartitionDeleteOrNone",
    ),
    Route(
        BROKER_LOG + "partitions",
        "User partitions in the log folders of brokers that are served here, and whose folders "
        "these are.",
        AccessRule.READER, "BrokerPartitions", errors=_FILE_ERRORS,
    ),
    Route(
        BROKER_LOG + "files",
        "Every file of a partition in such a folder, and whether it may be read now.",
        AccessRule.READER, "BrokerFiles", (*PARTITION, FOLDER), errors=_FILE_ERRORS,
    ),
    Route(
        BROKER_LOG + "file",
        "The bytes of a file of a rolled segment that ends at or below the last stable offset, or "
        "of what belongs to it; one `Range` at a time.",
        AccessRule.READER, "Bytes", (*PARTITION, FOLDER, FILE_NAME), content_types=(BYTES,),
        also=(206,), errors=(*_FILE_ERRORS, 409, 416),
    ),
)  # fmt: skip
