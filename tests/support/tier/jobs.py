"""Jobs over one store, in a line each: each has a heart, claims and a clock of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlmm.metadata.ids import Uuid
from spark_tiering.job_registry.claims import Claims
from spark_tiering.job_registry.heartbeat_thread import HeartbeatThread
from spark_tiering.job_registry.ids import new_job_id
from spark_tiering.job_registry.job_store import JobStore, JobTopic
from tests.support.stores.memory_store import NOW_MS, MemoryStore

if TYPE_CHECKING:
    from spark_tiering.stores.protocol import ObjectStore

PREFIX = "tier/"
TTL_MS = 60_000
ORDERS = JobTopic("orders", Uuid.of(0, 0xCA))
PAYMENTS = JobTopic("payments", Uuid.of(0, 0xCB))


@dataclass
class WallClock:
    now_ms: int = NOW_MS

    def __call__(self) -> int:
        return self.now_ms


@dataclass
class Job:
    number: int
    store: ObjectStore = field(default_factory=MemoryStore)
    clock: WallClock = field(default_factory=WallClock)
    is_put_conditional: bool = True
    prefix: str = PREFIX

    def __post_init__(self) -> None:
        self.job_id = job_id(self.number)
        self.jobs = JobStore(self.store, self.prefix, self.clock)
        self.heart = HeartbeatThread(
            self.jobs, self.job_id, ttl_ms=TTL_MS, host=f"host-{self.number}", pid=self.number
        )
        self.claims = Claims(self.jobs, self.heart, is_put_conditional=self.is_put_conditional)

    def alive(self) -> Job:
        assert self.heart.beat()
        return self


def job_id(number: int, now_ms: int = NOW_MS) -> str:
    return new_job_id(now_ms + number * 1_000, f"host-{number}", f"{number:06x}")


def names(store: Any, folder: str = "") -> list[str]:
    start = f"{PREFIX}rlmm-jobs/{folder}"
    return [one.key.removeprefix(start) for one in store.list(start)]
