"""Objects of jobs: written once, whatever the store answers."""

from __future__ import annotations

import pytest

from rlmm.errors import InvalidArgument, StoreUnavailable, StoreUnsuitable
from rlmm.metadata.ids import Uuid
from spark_tiering.job_registry.job_store import JobStore, JobTopic, number_of, read_fields
from spark_tiering.stores.results import ObjectArchived, PutRefusal, PutRefused
from tests.support.stores.memory_store import MemoryStore
from tests.support.tier.jobs import ORDERS, PREFIX, job_id

KEY = "some/key"


def test_keys_when_made_then_are_where_they_are_documented() -> None:
    """Each kind of record has its documented key below the prefix."""
    jobs = JobStore(MemoryStore(), PREFIX)
    assert jobs.job_key(job_id(1), "plan.json") == f"tier/rlmm-jobs/jobs/{job_id(1)}/plan.json"
    assert jobs.beat_key(job_id(1), 7).endswith("/beats/00000000000000000007.json")
    assert jobs.claim_key(ORDERS, 3) == (
        f"tier/rlmm-jobs/claims/orders-{ORDERS.topic_id}/00000000000000000003.json"
    )


@pytest.mark.parametrize("name", ["", "a/b", "ä", "x" * 250])
def test_key_when_no_broker_has_the_topic_then_refused(name: str) -> None:
    """The key of a topic with a slash in its name is refused."""
    with pytest.raises(InvalidArgument):
        JobStore(MemoryStore()).claim_key(JobTopic(name, Uuid.of(0, 1)), 1)


def test_key_when_it_is_no_job_then_refused() -> None:
    """The key of an invalid job id is refused, so that no command line leads elsewhere."""
    with pytest.raises(InvalidArgument):
        JobStore(MemoryStore()).job_key("../../orders", "plan.json")


@pytest.mark.parametrize(
    ("told", "there", "is_written"),
    [
        (["fine"], None, True),
        (["fine"], b"mine", True),
        (["fine"], b"other", False),
        (["landed"], None, True),
        (["landed"], b"other", False),
        (["lost", "fine"], None, True),
        (["lost", "landed"], None, True),
        (["lost"], b"other", False),
    ],
)
def test_unknown_write_is_looked_up(told: list[str], there: bytes | None, is_written: bool) -> None:
    """After a put of unknown outcome the job reads whether its object lies there (F126)."""
    store = MemoryStore({} if there is None else {KEY: there})
    store.next_puts.extend(told)
    assert JobStore(store).write_once(KEY, b"mine") is is_written
    assert (store.objects[KEY] == b"mine") is is_written


def test_write_when_every_outcome_is_unknown_then_nobody_can_say() -> None:
    """A write whose outcomes are all unknown ends as unknown after a bounded number of attempts."""
    store = MemoryStore()
    store.next_puts.extend(["lost"] * 50)
    with pytest.raises(StoreUnavailable, match="the store did not tell"):
        JobStore(store).write_once(KEY, b"mine")


@pytest.mark.parametrize(
    ("reason", "error"), [(PutRefusal.NO_ROOM, StoreUnavailable), (PutRefusal.KEY, StoreUnsuitable)]
)
def test_write_when_it_is_refused_then_raised(
    reason: PutRefusal, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full store or an invalid key raises to the caller."""
    store = MemoryStore()
    monkeypatch.setattr(store, "put", lambda key, content: PutRefused(reason, key))
    with pytest.raises(error):
        JobStore(store).write_once(KEY, b"mine")


def test_read_when_the_object_is_archived_then_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read of an archived object raises instead of reporting it as absent."""
    store = MemoryStore({KEY: b""})
    assert JobStore(store).read(KEY) == b""
    monkeypatch.setattr(store, "get", lambda key, first, last: ObjectArchived(key, "GLACIER"))
    with pytest.raises(StoreUnsuitable):
        JobStore(store).read(KEY)


def test_highest_when_other_names_stand_between_then_they_are_passed_over() -> None:
    """The highest number counts names of digits directly in the folder, and nothing else."""
    names = ["0003.json", "12.json", "99.jsonl", "x.json", ".json", "٣٣.json", "77/1.json"]
    store = MemoryStore({f"f/{name}": b"" for name in names})
    assert JobStore(store).highest("f/") == 12
    assert JobStore(store).highest("g/") == 0
    assert number_of("f/0003.json", "f/", ".json") == 3


@pytest.mark.parametrize("content", [None, b"", b"[1]", b"\xff", b"{", b"[" * 100_000])
def test_fields_when_it_is_no_object_of_json_then_none(content: bytes | None) -> None:
    """An object that is not a JSON object has no fields, whatever its bytes are."""
    assert read_fields(content) is None
    assert read_fields(b'{"a": "\xc3\xa4"}') == {"a": "ä"}
