"""
Journals in the object store, written once: `<prefix>rlmm-jobs/adopt/<topic>-<topic id>/`. Of two
jobs that write the next entry one is refused, so it learns that another has the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import StoreUnsuitable, TopicBusy
from spark_tiering.adopt.journal import AdoptionJournal, AdoptionStep, format_journal, parse_journal
from spark_tiering.job_registry.job_store import number_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from spark_tiering.job_registry.job_store import JobStore, JobTopic


class JournalBook:
    def __init__(self, jobs: JobStore, topic: JobTopic) -> None:
        self.topic = topic
        self._jobs = jobs

    def newest(self) -> AdoptionJournal | None:
        """Return the newest entry; None without a window. Raises `StoreUnsuitable`."""
        number = self._jobs.highest(self._jobs.windows_folder(self.topic))
        return _read(self._jobs, self.topic, number) if number else None

    def first(
        self,
        before: AdoptionJournal | None,
        cluster_id: str,
        job_id: str,
        settings: Mapping[str, str],
        log_starts: Mapping[int, int],
    ) -> AdoptionJournal:
        """Return the first entry of a new window, behind the closed *before*; it is not stored."""
        assert before is None or not before.is_open, before
        now_ms = self._jobs.now_ms()
        return AdoptionJournal(
            *self.topic,
            cluster_id,
            1 if before is None else before.generation + 1,
            AdoptionStep.OPENING,
            job_id,
            now_ms,
            now_ms,
            dict(settings),
            dict(log_starts),
            trouble="",
        )

    def write(self, journal: AdoptionJournal) -> None:
        """Store *journal*, or raise `TopicBusy`; after another error it may be there."""
        key = self._jobs.window_key(self.topic, journal.generation)
        if not self._jobs.write_once(key, format_journal(journal)):
            msg = f"topic {self.topic.name}: another job has taken over its window ({key})"
            raise TopicBusy(msg)


def open_windows(jobs: JobStore) -> Iterator[AdoptionJournal]:
    """Yield the newest entry of every open window, by one listing. Raises `StoreUnsuitable`."""
    newest: dict[str, int] = {}
    for one in jobs.list(jobs.all_windows_folder):
        folder, _, _ = one.key.rpartition("/")
        number = number_of(one.key, f"{folder}/", ".json")
        if number is not None:
            newest[folder] = max(number, newest.get(folder, 0))
    for folder, number in sorted(newest.items()):
        journal = _of_key(jobs, f"{folder}/{number:020d}.json")
        if journal.is_open:
            yield journal


def _read(jobs: JobStore, topic: JobTopic, number: int) -> AdoptionJournal:
    key = jobs.window_key(topic, number)
    journal = _of_key(jobs, key)
    if (journal.topic, journal.generation) != (topic, number):
        msg = f"{key} is the journal of another window"
        raise StoreUnsuitable(msg)
    return journal


def _of_key(jobs: JobStore, key: str) -> AdoptionJournal:
    journal = parse_journal(jobs.read(key))
    if journal is None:
        msg = f"{key} is no journal that this version can read: nothing is done about the topic"
        raise StoreUnsuitable(msg)
    return journal
