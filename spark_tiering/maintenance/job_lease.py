"""
A run that changes a tier while it is alive: its beats, and the topics that it has claimed, in the
store itself and as copy jobs do it, so that no two of them work at one topic at the same time.
"""

from __future__ import annotations

import socket
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_tiering.job_registry.claims import Claims, TopicsBusy
from spark_tiering.job_registry.heartbeat_thread import HeartbeatThread
from spark_tiering.job_registry.ids import new_job_id
from spark_tiering.job_registry.job_store import FOLDER, JobStore
from spark_tiering.job_registry.records import JobRecords
from spark_tiering.stores.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spark_tiering.job_registry.job_store import JobTopic
    from spark_tiering.maintenance.tier import Tier
    from spark_tiering.stores.results import StoreTraits


@dataclass(frozen=True, slots=True)
class MaintenanceLease:
    """One run that is alive. For the one thread that publishes."""

    job_id: str
    jobs: JobStore
    claims: Claims
    records: JobRecords
    traits: StoreTraits

    def claim_each(self, topics: Iterable[JobTopic]) -> dict[JobTopic, TopicsBusy]:
        """Take each of *topics* that is free; who has the others."""
        busy = {}
        for topic in topics:
            outcome = self.claims.acquire([topic])
            if isinstance(outcome, TopicsBusy):
                busy[topic] = outcome
        return busy


@contextmanager
def open_care_life(tier: Tier) -> Iterator[MaintenanceLease]:
    """
    A run on *tier* says that it is alive, until the end of the block. Raises what the store does:
    nothing was begun then.
    """
    prefix = tier.request.prefix
    traits = tier.store.probe(f"{prefix}{FOLDER}")
    job_id = new_job_id(tier.now_ms(), socket.gethostname())
    jobs = JobStore(tier.store, prefix, tier.now_ms)
    with (
        closing(open_store(tier.request.require_store)) as own_store,
        HeartbeatThread(JobStore(own_store, prefix, tier.now_ms), job_id) as heart,
    ):
        claims = Claims(jobs, heart, is_put_conditional=traits.refuses_second_put)
        yield MaintenanceLease(job_id, jobs, claims, JobRecords(jobs, job_id), traits)


def busy_text(busy: TopicsBusy, now_ms: int) -> str:
    """Who has a topic, and until when at least, for people."""
    until_s = max(0, busy.until_ms - now_ms) // 1_000
    return (
        f"topic {busy.topic.name}: job {busy.job_id} on {busy.host} works on it; "
        f"unless it is heard of again, it is free in {until_s} s"
    )
