"""Journals of windows: values that follow each other, and objects that are written once."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from rlmm.errors import InvalidArgument, StoreUnsuitable, TopicBusy
from spark_tiering.adopt.journal import AdoptionJournal, AdoptionStep, format_journal, parse_journal
from spark_tiering.adopt.journal_store import JournalBook, open_windows
from spark_tiering.job_registry.job_store import JobStore
from tests.support.stores.memory_store import NOW_MS, MemoryStore
from tests.support.tier.jobs import ORDERS, PAYMENTS, PREFIX

JOB, OTHER = "20261119T014512Z-host-4f09a2", "20261119T020000Z-other-4f09a3"
BEFORE = {"retention.ms": "86400000", "local.retention.bytes": "1"}
STARTS = {0: 5, 3: 70}


def store() -> JobStore:
    return JobStore(MemoryStore(), PREFIX, lambda: NOW_MS)


def first(jobs: JobStore) -> AdoptionJournal:
    book = JournalBook(jobs, ORDERS)
    return book.first(book.newest(), "cluster-1", JOB, BEFORE, STARTS)


def of_payments(journal: AdoptionJournal) -> AdoptionJournal:
    topic_name, topic_id = PAYMENTS
    return replace(journal, topic_name=topic_name, topic_id=topic_id, generation=1)


SPOILED = {
    "a setting that no window changes": ("before", {"segment.bytes": "1"}),
    "a partition that is no number": ("logStarts", {"x": 1}),
    "a job that is none": ("jobId", "../../claims"),
    "a value that no journal could hold": ("before", {"retention.ms": "\ud800"}),
}


@pytest.mark.parametrize(("name", "value"), SPOILED.values(), ids=SPOILED.keys())
def test_journal_when_it_is_spoiled_then_nobody_goes_by_it(name: str, value: object) -> None:
    """A spoiled journal is refused as a whole, because settings are restored from it."""
    fields = json.loads(format_journal(first(store()))) | {name: value}
    assert parse_journal(json.dumps(fields).encode()) is None


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"\xff", b"{}"])
def test_journal_when_it_is_none_then_is_none(content: bytes | None) -> None:
    """A missing journal reads as none."""
    assert parse_journal(content) is None


def test_step_when_it_follows_then_counts_up_and_keeps_what_was_before() -> None:
    """Each step counts up and keeps the settings of before, whichever driver writes it."""
    journal = first(store())
    for number, step in enumerate(
        (AdoptionStep.OPEN, AdoptionStep.CLOSING, AdoptionStep.RESTORING, AdoptionStep.CLOSED), 2
    ):
        assert journal.is_open
        journal = journal.to(step, OTHER, NOW_MS + number)
        assert (journal.generation, journal.step, journal.job_id) == (number, step, OTHER)
        assert (journal.before, journal.log_starts) == (BEFORE, STARTS)
        assert (journal.opened_ms, journal.written_ms) == (NOW_MS, NOW_MS + number)
    assert not journal.is_open


@pytest.mark.parametrize(
    ("step", "following"),
    [
        (AdoptionStep.OPENING, AdoptionStep.RESTORING),
        (AdoptionStep.RESTORING, AdoptionStep.OPEN),
        (AdoptionStep.CLOSED, AdoptionStep.CLOSING),
    ],
)
def test_step_that_never_follows_is_refused(step: AdoptionStep, following: AdoptionStep) -> None:
    """An entry that cannot follow the last one is refused."""
    with pytest.raises(InvalidArgument, match="never"):
        replace(first(store()), step=step).to(following, JOB, NOW_MS)


def test_entry_when_another_job_has_written_it_then_refused() -> None:
    """Of two jobs that write one number, one is refused; repeating the same entry succeeds."""
    jobs = store()
    book = JournalBook(jobs, ORDERS)
    journal = first(jobs)
    book.write(journal)
    book.write(journal)
    assert book.newest() == journal
    with pytest.raises(TopicBusy, match="taken over"):
        book.write(replace(journal, job_id=OTHER))


def test_windows_when_some_are_open_then_are_listed_by_their_newest_entry() -> None:
    """Open windows go by the newest entry: closed ones are absent, reopened ones present."""
    jobs = store()
    assert list(open_windows(jobs)) == []
    book = JournalBook(jobs, ORDERS)
    journal = first(jobs)
    book.write(journal)
    assert list(open_windows(jobs)) == [journal]
    closed = journal.to(AdoptionStep.CLOSED, JOB, NOW_MS)
    book.write(closed)
    assert list(open_windows(jobs)) == []
    again = first(jobs)
    assert (again.generation, again.step) == (3, AdoptionStep.OPENING)
    book.write(again)
    other = of_payments(again)
    JournalBook(jobs, PAYMENTS).write(other)
    assert list(open_windows(jobs)) == [again, other]


@pytest.mark.parametrize("spoiled", [b"nothing", None], ids=["no journal", "of another window"])
def test_journal_when_unreadable_in_the_store_then_nothing_is_done(spoiled: bytes | None) -> None:
    """A journal that cannot be understood stops the adoption: another program wrote it."""
    memory = MemoryStore()
    jobs = JobStore(memory, PREFIX, lambda: NOW_MS)
    other = of_payments(first(jobs))
    content = format_journal(other) if spoiled is None else spoiled
    memory.objects[jobs.window_key(ORDERS, 1)] = content
    with pytest.raises(StoreUnsuitable):
        JournalBook(jobs, ORDERS).newest()
