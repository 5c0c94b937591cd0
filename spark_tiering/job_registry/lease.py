"""A lease: a job that is alive, with its heartbeat and the topics that it has claimed."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import TopicBusy
from spark_tiering.job_registry.claims import Claims, TopicsBusy
from spark_tiering.job_registry.heartbeat_thread import HeartbeatThread
from spark_tiering.job_registry.job_store import JobStore
from spark_tiering.job_registry.records import JobRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from spark_tiering.job_registry.job_store import JobTopic
    from spark_tiering.stores.protocol import ObjectStore
    from spark_tiering.stores.results import StoreTraits


@dataclass(frozen=True, slots=True)
class JobLease:
    job_id: str
    claims: Claims
    records: JobRecords
    traits: StoreTraits
    now_ms: Callable[[], int]

    def claim(self, topics: Collection[JobTopic]) -> None:
        """Claim all of *topics*. Raise `TopicBusy`, with none claimed, where one is busy."""
        outcome = self.claims.acquire(topics)
        if isinstance(outcome, TopicsBusy):
            raise TopicBusy(self._busy_text(outcome))

    def claim_each(self, topics: Iterable[JobTopic]) -> dict[JobTopic, str]:
        """Claim each of *topics* that is free; return, for the others, which job has them."""
        outcomes = {topic: self.claims.acquire([topic]) for topic in topics}
        return {
            topic: self._busy_text(outcome)
            for topic, outcome in outcomes.items()
            if isinstance(outcome, TopicsBusy)
        }

    def _busy_text(self, busy: TopicsBusy) -> str:
        until_s = max(0, busy.until_ms - self.now_ms()) // 1_000
        return (
            f"topic {busy.topic.name}: job {busy.job_id} on {busy.host} works on it; "
            f"unless it is heard of again, it is free in {until_s} s"
        )


@contextmanager
def open_lease(
    jobs: JobStore,
    open_own_store: Callable[[], ObjectStore],
    prefix: str,
    job_id: str,
    traits: StoreTraits,
    now_ms: Callable[[], int],
) -> Iterator[JobLease]:
    """Keep the job alive until the block ends; raises the store's errors with nothing begun."""
    with (
        closing(open_own_store()) as own_store,
        HeartbeatThread(JobStore(own_store, prefix, now_ms), job_id) as heart,
    ):
        claims = Claims(jobs, heart, is_put_conditional=traits.refuses_second_put)
        yield JobLease(job_id, claims, JobRecords(jobs, job_id), traits, now_ms)
