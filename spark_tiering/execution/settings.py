"""Everything that can be said of an engine, and no credential among it."""

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
"""The variable by which spark-submit tells a program in Python where its Java process is."""

PORT_MAX = 65_535

TRIES = 4
"""How often Spark runs a task before its job fails: its own default everywhere but on one machine,
where it would be once."""

_LOCAL = re.compile(r"local(?:\[(?P<slots>\d+|\*)\])?")
_MASTER = re.compile(r"(?P<host>[^:/,\[\]]+|\[[^\]]+\]):(?P<port>\d{1,5})")


@dataclass(frozen=True, slots=True)
class ExecutionSettings:
    """Where units run."""

    master: str | None = None
    """None: in this process. Else Spark's word, `local[4]`, `spark://host:7077`, `yarn`,
    `k8s://...`; `sc://host` for Spark Connect; `SUBMITTED` under spark-submit."""
    slots: int = 1
    """How many units run at a time in this process. More than one are threads: for functions that
    share nothing."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Further settings of Spark's; they stand above ours, and below those of spark-submit."""
    log_file: str = ""
    """Where everything goes that Spark and its workers print; empty: nowhere. Not for sessions that
    somebody else has started."""
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
        """Whether Spark and its workers run here."""
        return (self.master or "").startswith("local")

    @property
    def is_connect(self) -> bool:
        """Whether Spark is reached by Spark Connect."""
        return (self.master or "").startswith(CONNECT)


def is_submitted(environment: Mapping[str, str] | None = None) -> bool:
    """Whether spark-submit, or a shell of Spark's, has started this process."""
    return GATEWAY_PORT in (os.environ if environment is None else environment)


def retrying(master: str) -> str:
    """*master*, so that a task is tried again on one machine, too, where Spark would not."""
    found = _LOCAL.fullmatch(master)
    return master if found is None else f"local[{found['slots'] or 1},{TRIES}]"


def standalone_masters(master: str) -> list[tuple[str, int]]:
    """Host and port of each master of a standalone cluster; none where *master* names no such."""
    scheme, _, places = master.partition("://")
    if scheme != "spark":
        return []
    found = [_MASTER.fullmatch(place) for place in places.split(",")]
    named = [(one["host"].strip("[]"), int(one["port"])) for one in found if one is not None]
    return [(host, port) for host, port in named if port <= PORT_MAX]
