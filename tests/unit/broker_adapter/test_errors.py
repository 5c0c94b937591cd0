"""Errors of calls: which are retried, and what a broker raises for them."""

from __future__ import annotations

from typing import Any

import pytest

from broker_adapter import retry_policies
from broker_adapter.kafka_exceptions import BrokerException, exception_for
from broker_adapter.retry_policies import ASSIGNMENTS, JITTER, READS, WRITES, RetryPolicy
from rlmm import errors
from rlmm.errors import NotReady, RlmmError, SidecarUnavailable, TooBusy
from rlmm.metadata.outcomes import JAVA_CLASSES, error_of
from rlmm.wire.errors import read_error

READ_AGAIN = {"SidecarUnavailable", "NotReady", "TooBusy", "LogUnavailable"}
STORED_AGAIN = {*READ_AGAIN, "OverBudget"}
ALL = [
    found
    for found in vars(errors).values()
    if isinstance(found, type) and issubclass(found, RlmmError)
]


class Trial:
    """Attempts with planned failures, in a time that passes only during waits."""

    def __init__(self, *outcomes: RlmmError | str) -> None:
        self.outcomes = list(outcomes)
        self.attempts = 0
        self.now_s = 100.0
        self.pauses: list[float] = []
        self.told: list[tuple[str, str]] = []

    async def attempt(self) -> str:
        self.attempts += 1
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, RlmmError):
            raise outcome
        return outcome

    async def sleep(self, pause_s: float) -> None:
        self.pauses.append(pause_s)
        self.now_s += pause_s

    async def run(self, policy: RetryPolicy, timeout_s: float | None = 10.0, **options: Any) -> str:
        attempts = policy.attempts(
            now=lambda: self.now_s,
            deadline_s=None if timeout_s is None else self.now_s + timeout_s,
            hook=lambda name, error, _: self.told.append((name, error.code)),
            sleep=self.sleep,
            **options,
        )
        return await attempts(self.attempt)


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
@pytest.mark.parametrize(
    ("policy", "repeated"), [(READS, READ_AGAIN), (WRITES, STORED_AGAIN)], ids=["reads", "writes"]
)
async def test_error_then_repeated_exactly_where_its_class_says_that_it_is_safe(
    policy: RetryPolicy, repeated: set[str], error: type[RlmmError]
) -> None:
    """Every class of error has a rule, and an event that may be stored is not stored again."""
    trial = Trial(error("x"), "done")
    if error.__name__ in repeated:
        assert await trial.run(policy) == "done"
        assert trial.told == [(policy.name, error.code)]
    else:
        with pytest.raises(error):
            await trial.run(policy)
        assert trial.attempts == 1


async def test_not_ready_then_asked_again_when_the_service_said() -> None:
    """The pause is the hint with jitter, so that clients do not return all at once (F33)."""
    trial = Trial(NotReady("x", retry_after_ms=400), "done")
    await trial.run(READS)
    (pause_s,) = trial.pauses
    assert 0.4 * (1 - JITTER) <= pause_s <= 0.4 * (1 + JITTER)


async def test_pauses_then_grow_up_to_the_last_and_differ() -> None:
    """Each pause is about twice the one before, and no two clients come back together."""
    trial = Trial(*[TooBusy("x")] * 12, "done")
    await trial.run(READS, timeout_s=100.0)
    expected = [min(0.02 * 2**number, 1.0) for number in range(12)]
    shares = [pause / about for pause, about in zip(trial.pauses, expected, strict=True)]
    assert all(1 - JITTER <= share <= 1 + JITTER for share in shares)
    assert len(set(shares)) > 1


async def test_deadline_then_no_attempt_behind_it_and_one_just_before() -> None:
    """The client makes no attempt behind the deadline and one just before it."""
    trial = Trial(NotReady("x", retry_after_ms=60_000))
    with pytest.raises(NotReady):
        await trial.run(READS, timeout_s=2.0)
    assert trial.attempts == 2
    assert trial.pauses == [pytest.approx(2.0 - READS.last_s)]


async def test_event_when_little_time_is_left_then_what_is_known_is_said() -> None:
    """The client does not send an event whose answer could hardly arrive in time."""
    trial = Trial(NotReady("x", retry_after_ms=1))
    with pytest.raises(NotReady):
        await trial.run(WRITES, timeout_s=0.2)
    assert trial.attempts == 1


async def test_attempts_then_end_at_their_number() -> None:
    """Retries end at their maximum number."""
    trial = Trial(TooBusy("x"))
    with pytest.raises(TooBusy):
        await trial.run(
            RetryPolicy("few", (TooBusy,), WRITES.pauses, attempts_max=3), timeout_s=1e6
        )
    assert trial.attempts == 3


async def test_assignments_then_told_without_end() -> None:
    """The client repeats an assignment until it is accepted, whatever the refusal."""
    refusals = [TooBusy("x"), errors.NotPermitted("x"), SidecarUnavailable("x")] * 50
    trial = Trial(*refusals, "done")
    assert await trial.run(ASSIGNMENTS, timeout_s=None) == "done"
    assert trial.attempts == 151


async def test_switch_when_off_then_one_attempt() -> None:
    """A test can see the first answer."""
    trial = Trial(TooBusy("x"))
    with pytest.raises(TooBusy):
        await trial.run(READS, is_repeating=False)
    assert (trial.attempts, trial.pauses, trial.told) == (1, [], [])


def test_policies_then_there_are_three() -> None:
    """There are three retry policies, all in one module."""
    found = [one for one in vars(retry_policies).values() if isinstance(one, RetryPolicy)]
    assert tuple(found) == retry_policies.POLICIES


def test_unknown_partition_is_told_as_a_missing_resource() -> None:
    """An unknown partition becomes Kafka's missing resource, unlike one that is not ready."""
    assert exception_for(errors.UnknownPartition("x")) == BrokerException(
        "org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException", False
    )


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
def test_every_error_is_told_with_its_own_retriability(error: type[RlmmError]) -> None:
    """A broker tries again by itself exactly where trying again can help."""
    assert exception_for(error("x")).retriable is error.retriable


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
def test_translation_agrees_with_kafkas_own_outcomes(error: type[RlmmError]) -> None:
    """The broker gets the error of Kafka's own classes where they have one."""
    outcome = error_of(error("x"))
    if outcome is not None:
        assert exception_for(error("x")).java_class == JAVA_CLASSES[outcome]
    else:
        assert exception_for(error("x")).java_class


TOLD = {
    "ReplicaNotAvailableException": {"NotReady"},
    "RemoteResourceNotFoundException": {
        "FileAbsent", "NotAssigned", "NotFound", "UnknownPartition",
    },
    "IllegalArgumentException": {"InvalidArgument", "NotPublishable"},
    "IllegalStateException": {"Stopped"},
    "RetriableRemoteStorageException": {
        "LogUnavailable", "OutcomeUnknown", "OverBudget", "SidecarUnavailable", "StoreUnavailable",
        "TooBusy", "TopicBusy",
    },
    "RemoteStorageException": {
        "AppendRefused", "AppendUncertain", "AssignmentLost", "ConfigError", "CredentialsAbsent",
        "DataLost", "EngineFailed", "EngineUnfit", "EventRejected", "FolderInUse", "ImageCorrupt",
        "LogDamaged", "LogError", "LogNotPermitted", "LogRecreated", "LogTruncated", "NotPermitted",
        "NotSealed", "NotWritable", "PartFailed", "PlanStale", "ProtocolError", "PumpFailed",
        "RequestError", "RlmmError", "SnapshotCorrupt", "SnapshotError", "SnapshotForeign",
        "SnapshotRefused", "SnapshotUnsupported", "StopTimedOut", "StoreAbsent", "StoreError",
        "StoreNotPermitted", "StoreUnsuitable", "Superseded", "TierUnreadable", "TopicAbsent",
        "UnknownMethod", "Unresolved", "UnsupportedVersion", "WrongCluster",
    },
}  # fmt: skip


def test_every_error_has_its_place_in_the_table() -> None:
    """The table has every class of error."""
    told: dict[str, set[str]] = {}
    for error in ALL:
        name = exception_for(error("x")).java_class.rpartition(".")[2]
        told.setdefault(name, set()).add(error.__name__)
    assert told == TOLD


def test_error_of_a_newer_service_then_told_by_what_it_says_of_itself() -> None:
    """An unknown class of error is retriable if the service says so."""
    value = ["brand-new", "something else", True, {"base": "log"}]
    assert exception_for(read_error(value)).retriable is True
