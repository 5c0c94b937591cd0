"""A log line as one JSON object, by the standard library alone: a start imports nothing for it."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

_OF_EVERY_RECORD = logging.LogRecord("name", 0, "path", 0, "message", (), None).__dict__.keys()
_NEXT = ("cluster", "cluster_id", "metadata_partition", "offset")
"""Fields that stand in front of others, in every line that has them."""


class JsonLineFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return the line: time, level, logger and message, then the fields of *record*."""
        message = record.getMessage()
        said = {name: one for name, one in vars(record).items() if name not in _OF_EVERY_RECORD}
        fields: dict[str, Any] = {
            "time": time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message,
        }
        fields |= {name: said[name] for name in _NEXT if name in said}
        if record.stack_info:
            fields["stack_info"] = record.stack_info
        fields |= {name: one for name, one in said.items() if name not in fields}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=repr)


def time_of(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return at.replace("+00:00", "Z")
