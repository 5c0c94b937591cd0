"""The settings of an engine, without credentials."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


SUBMITTED = ""
"""The master that is no name: spark-submit has said which one."""
CONNECT = "sc://"

GATEWAY_PORT = "PYSPARK_GATEWAY_PORT"
"""spark-submit sets it to the port of its Java process."""

PORT_MAX = 65_535

TRIES = 4
"""How often Spark runs a task before its job fails: its own default, but for one machine."""

_LOCAL = re.compile(r"local(?:\[(?P<slots>\d+|\*)\])?")
_MASTER = re.compile(r"(?P<host>[^:/,\[\]]+|\[[^\]]+\]):(?P<port>\d{1,5})")


@dataclass(frozen=True, slots=True)
class ExecutionSettings:
    master: str | None = None
    """None: in this process. Else Spark's word, `local[4]`, `spark://host:7077`, `yarn`,
    `k8s://...`; `sc://host` for Spark Connect; `SUBMITTED` under spark-submit."""
    slots: int = 1
    """How many units run at a time here; several are threads, for functions that share nothing."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Further settings of Spark's; they stand above ours, and below those of spark-submit."""
    log_file: str = ""
    """Where our own Spark and its workers print to; empty: nowhere."""
    cache_folder: str = ""
    """For what is made once; empty: `rlmm` in the user's own cache."""

    def __post_init__(self) -> None:
        if self.slots < 1:
            msg = f"{self.slots} slots, one at least is needed"
            raise ConfigError(msg)
        if self.master is not None and re.search(r"\s", self.master):
            msg = f"{self.master!r} is no master of Spark's"
            raise ConfigError(msg)

    @property
    def is_on_this_machine(self) -> bool:
        return (self.master or "").startswith("local")

    @property
    def is_connect(self) -> bool:
        return (self.master or "").startswith(CONNECT)


def is_submitted(environment: Mapping[str, str] | None = None) -> bool:
    return GATEWAY_PORT in (os.environ if environment is None else environment)


def retrying(master: str) -> str:
    found = _LOCAL.fullmatch(master)
    return master if found is None else f"local[{found['slots'] or 1},{TRIES}]"


def standalone_masters(master: str) -> list[tuple[str, int]]:
    """Return host and port of each master of a standalone cluster; nothing for other masters."""
    scheme, _, places = master.partition("://")
    if scheme != "spark":
        return []
    found = [_MASTER.fullmatch(place) for place in places.split(",")]
    named = [(one["host"].strip("[]"), int(one["port"])) for one in found if one is not None]
    return [(host, port) for host, port in named if port <= PORT_MAX]


KILL_TIMEOUT = "spark.python.task.killTimeout"
"""How long a Python worker may go on whose task Spark knows to be over; 2 s by default."""

_UNITS_S = {"us": 1e-6, "ms": 1e-3, "": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
_FORM = re.compile(r"\s*(\d+)\s*([a-z]*)\s*")


def seconds_of(text: str) -> float:
    """Read `2s` or `1500ms`; milliseconds without a unit, 0 for a text that Spark refuses."""
    found = _FORM.fullmatch(text.lower())
    return 0.0 if found is None else int(found[1]) * _UNITS_S.get(found[2], 0)
