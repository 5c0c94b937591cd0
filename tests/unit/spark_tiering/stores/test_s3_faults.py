"""What the client library's exceptions mean, by class; and what is tried again for each."""

from __future__ import annotations

import pytest
from botocore import exceptions as aws
from botocore.parsers import ResponseParserError

from rlmm.errors import (
    ConfigError,
    CredentialsAbsent,
    RlmmError,
    StoreAbsent,
    StoreNotPermitted,
    StoreUnavailable,
    StoreUnsuitable,
)
from spark_tiering.stores.s3_faults import Fault, FaultKind, raise_fault, sort_fault
from spark_tiering.stores.s3_policies import POLICIES, Repeats


def answered(status: int, code: str) -> aws.ClientError:
    """An answer of the store that says no."""
    response = {
        "Error": {"Code": code, "Message": "words"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return aws.ClientError(response, "PutObject")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (answered(503, "SlowDown"), FaultKind.THROTTLED),
        (answered(503, "Unknown"), FaultKind.THROTTLED),
        (answered(429, "TooManyRequests"), FaultKind.THROTTLED),
        (answered(500, "InternalError"), FaultKind.SERVER),
        (answered(502, "BadGateway"), FaultKind.SERVER),
        (answered(200, "InternalError"), FaultKind.SERVER),
        (answered(400, "RequestTimeout"), FaultKind.CUT),
        (answered(400, "BadDigest"), FaultKind.DAMAGED),
        (answered(409, "ConditionalRequestConflict"), FaultKind.RACING),
        (answered(412, "PreconditionFailed"), FaultKind.EXISTS),
        (answered(412, "412"), FaultKind.EXISTS),
        (answered(404, "404"), FaultKind.NO_KEY),
        (answered(404, "NoSuchBucket"), FaultKind.NO_BUCKET),
        (answered(404, "NoSuchUpload"), FaultKind.NO_UPLOAD),
        (answered(416, "InvalidRange"), FaultKind.NO_RANGE),
        (answered(403, "InvalidObjectState"), FaultKind.ARCHIVED),
        (answered(403, "403"), FaultKind.NO_RIGHTS),
        (answered(400, "ExpiredToken"), FaultKind.NO_RIGHTS),
        (answered(400, "KMS.DisabledException"), FaultKind.NO_RIGHTS),
        (answered(301, "PermanentRedirect"), FaultKind.WRONG_PLACE),
        (answered(400, "AuthorizationHeaderMalformed"), FaultKind.WRONG_PLACE),
        (answered(400, "EntityTooLarge"), FaultKind.TOO_LARGE),
        (answered(501, "NotImplemented"), FaultKind.UNSUITABLE),
        (answered(400, "InvalidArgument"), FaultKind.WRONG_SETTING),
        (aws.NoCredentialsError(), FaultKind.NO_CREDENTIALS),
        (aws.PartialCredentialsError(provider="env", cred_var="key"), FaultKind.NO_CREDENTIALS),
        (aws.ProfileNotFound(profile="none"), FaultKind.NO_CREDENTIALS),
        (aws.EndpointConnectionError(endpoint_url="http://a"), FaultKind.UNREACHED),
        (aws.ConnectTimeoutError(endpoint_url="http://a"), FaultKind.UNREACHED),
        (aws.ReadTimeoutError(endpoint_url="http://a"), FaultKind.TIMED_OUT),
        (aws.ConnectionClosedError(endpoint_url="http://a"), FaultKind.CUT),
        (aws.ResponseStreamingError(error="cut"), FaultKind.CUT),
        (aws.IncompleteReadError(actual_bytes=1, expected_bytes=2), FaultKind.CUT),
        (ResponseParserError("no XML"), FaultKind.CUT),
        (BrokenPipeError("cut"), FaultKind.CUT),
        (aws.SSLError(endpoint_url="https://a", error="EOF occurred"), FaultKind.CUT),
        (
            aws.SSLError(endpoint_url="https://a", error="certificate verify failed"),
            FaultKind.WRONG_SETTING,
        ),
        (aws.NoRegionError(), FaultKind.WRONG_SETTING),
        (ValueError("Invalid endpoint: x"), FaultKind.WRONG_SETTING),
    ],
    ids=lambda value: value.value if isinstance(value, FaultKind) else type(value).__name__,
)
def test_exception_when_sorted_is_of_one_kind(error: Exception, kind: FaultKind) -> None:
    """Codes count before statuses, and every exception has a kind, with its words."""
    fault = sort_fault("PutObject", error)
    assert fault.kind is kind
    assert fault.detail.startswith("PutObject: ")
    assert fault.cause is error


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (FaultKind.NO_CREDENTIALS, CredentialsAbsent),
        (FaultKind.NO_BUCKET, StoreAbsent),
        (FaultKind.NO_RIGHTS, StoreNotPermitted),
        (FaultKind.WRONG_PLACE, ConfigError),
        (FaultKind.WRONG_SETTING, ConfigError),
        (FaultKind.UNSUITABLE, StoreUnsuitable),
        (FaultKind.THROTTLED, StoreUnavailable),
        (FaultKind.TIMED_OUT, StoreUnavailable),
    ],
)
def test_fault_that_stays_when_raised_is_one_error_with_the_store_in_it(
    kind: FaultKind, error: type[RlmmError]
) -> None:
    """One line says which store, and what it said."""
    with pytest.raises(error, match="s3://objects") as caught:
        raise_fault(Fault(kind, "PutObject: words"), "s3://objects")
    assert "PutObject: words" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", list(FaultKind))
def test_fault_when_repeated_is_tried_as_often_as_its_policy_says(kind: FaultKind) -> None:
    """Only what may help is tried again, with pauses that are bounded, and the last one is told."""
    pauses: list[float] = []
    asked = []

    def attempt() -> Fault:
        asked.append(kind)
        return Fault(kind, f"attempt {len(asked)}")

    last = Repeats(pauses.append).run(attempt)
    policy = POLICIES.get(kind)
    attempts = 1 if policy is None else policy.attempts_max
    assert last == Fault(kind, f"attempt {attempts}")
    assert len(pauses) == attempts - 1
    if policy is not None:
        assert all(0 < pause_s <= policy.last_s for pause_s in pauses)


def test_repeats_when_an_attempt_gives_something_stop() -> None:
    """What is no fault is the answer, whatever came before it."""
    results: list[Fault | str] = [
        Fault(FaultKind.CUT, "1"),
        Fault(FaultKind.THROTTLED, "2"),
        "done",
    ]
    assert Repeats(lambda _: None).run(lambda: results.pop(0)) == "done"
