"""Faults of the client library by class, and the repeats for each."""

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
from spark_tiering.stores.s3_faults import S3Fault, S3FaultKind, raise_fault, sort_fault
from spark_tiering.stores.s3_policies import POLICIES, S3Retries


def answered(status: int, code: str) -> aws.ClientError:
    response = {
        "Error": {"Code": code, "Message": "words"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return aws.ClientError(response, "PutObject")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (answered(503, "SlowDown"), S3FaultKind.THROTTLED),
        (answered(503, "Unknown"), S3FaultKind.THROTTLED),
        (answered(429, "TooManyRequests"), S3FaultKind.THROTTLED),
        (answered(500, "InternalError"), S3FaultKind.SERVER),
        (answered(502, "BadGateway"), S3FaultKind.SERVER),
        (answered(200, "InternalError"), S3FaultKind.SERVER),
        (answered(400, "RequestTimeout"), S3FaultKind.CUT),
        (answered(400, "BadDigest"), S3FaultKind.DAMAGED),
        (answered(409, "ConditionalRequestConflict"), S3FaultKind.RACING),
        (answered(412, "PreconditionFailed"), S3FaultKind.EXISTS),
        (answered(412, "412"), S3FaultKind.EXISTS),
        (answered(404, "404"), S3FaultKind.NO_KEY),
        (answered(404, "NoSuchBucket"), S3FaultKind.NO_BUCKET),
        (answered(404, "NoSuchUpload"), S3FaultKind.NO_UPLOAD),
        (answered(416, "InvalidRange"), S3FaultKind.NO_RANGE),
        (answered(403, "InvalidObjectState"), S3FaultKind.ARCHIVED),
        (answered(403, "403"), S3FaultKind.NO_RIGHTS),
        (answered(400, "ExpiredToken"), S3FaultKind.NO_RIGHTS),
        (answered(400, "KMS.DisabledException"), S3FaultKind.NO_RIGHTS),
        (answered(301, "PermanentRedirect"), S3FaultKind.WRONG_PLACE),
        (answered(400, "AuthorizationHeaderMalformed"), S3FaultKind.WRONG_PLACE),
        (answered(400, "EntityTooLarge"), S3FaultKind.TOO_LARGE),
        (answered(501, "NotImplemented"), S3FaultKind.UNSUITABLE),
        (answered(400, "InvalidArgument"), S3FaultKind.WRONG_SETTING),
        (aws.NoCredentialsError(), S3FaultKind.NO_CREDENTIALS),
        (aws.PartialCredentialsError(provider="env", cred_var="key"), S3FaultKind.NO_CREDENTIALS),
        (aws.ProfileNotFound(profile="none"), S3FaultKind.NO_CREDENTIALS),
        (aws.EndpointConnectionError(endpoint_url="http://a"), S3FaultKind.UNREACHED),
        (aws.ConnectTimeoutError(endpoint_url="http://a"), S3FaultKind.UNREACHED),
        (aws.ReadTimeoutError(endpoint_url="http://a"), S3FaultKind.TIMED_OUT),
        (aws.ConnectionClosedError(endpoint_url="http://a"), S3FaultKind.CUT),
        (aws.ResponseStreamingError(error="cut"), S3FaultKind.CUT),
        (aws.IncompleteReadError(actual_bytes=1, expected_bytes=2), S3FaultKind.CUT),
        (ResponseParserError("no XML"), S3FaultKind.CUT),
        (BrokenPipeError("cut"), S3FaultKind.CUT),
        (aws.SSLError(endpoint_url="https://a", error="EOF occurred"), S3FaultKind.CUT),
        (
            aws.SSLError(endpoint_url="https://a", error="certificate verify failed"),
            S3FaultKind.WRONG_SETTING,
        ),
        (aws.NoRegionError(), S3FaultKind.WRONG_SETTING),
        (ValueError("Invalid endpoint: x"), S3FaultKind.WRONG_SETTING),
    ],
    ids=lambda value: value.value if isinstance(value, S3FaultKind) else type(value).__name__,
)
def test_exception_when_sorted_is_of_one_kind(error: Exception, kind: S3FaultKind) -> None:
    """Each exception has one kind, by its code before its status."""
    fault = sort_fault("PutObject", error)
    assert fault.kind is kind
    assert fault.detail.startswith("PutObject: ")
    assert fault.cause is error


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (S3FaultKind.NO_CREDENTIALS, CredentialsAbsent),
        (S3FaultKind.NO_BUCKET, StoreAbsent),
        (S3FaultKind.NO_RIGHTS, StoreNotPermitted),
        (S3FaultKind.WRONG_PLACE, ConfigError),
        (S3FaultKind.WRONG_SETTING, ConfigError),
        (S3FaultKind.UNSUITABLE, StoreUnsuitable),
        (S3FaultKind.THROTTLED, StoreUnavailable),
        (S3FaultKind.TIMED_OUT, StoreUnavailable),
    ],
)
def test_fault_that_stays_names_the_store(kind: S3FaultKind, error: type[RlmmError]) -> None:
    """A lasting fault is one error that names the store and its message."""
    with pytest.raises(error, match="s3://objects") as caught:
        raise_fault(S3Fault(kind, "PutObject: words"), "s3://objects")
    assert "PutObject: words" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", list(S3FaultKind))
def test_fault_when_repeated_is_tried_as_often_as_its_policy_says(kind: S3FaultKind) -> None:
    """A request is repeated as its policy says, and the last fault is raised."""
    pauses: list[float] = []
    asked = []

    def attempt() -> S3Fault:
        asked.append(kind)
        return S3Fault(kind, f"attempt {len(asked)}")

    last = S3Retries(pauses.append).run(attempt)
    policy = POLICIES.get(kind)
    attempts = 1 if policy is None else policy.attempts_max
    assert last == S3Fault(kind, f"attempt {attempts}")
    assert len(pauses) == attempts - 1
    if policy is not None:
        assert all(0 < pause_s <= policy.last_s for pause_s in pauses)


def test_repeats_when_an_attempt_gives_something_stop() -> None:
    """Attempts stop at the first answer that is no fault."""
    results: list[S3Fault | str] = [
        S3Fault(S3FaultKind.CUT, "1"),
        S3Fault(S3FaultKind.THROTTLED, "2"),
        "done",
    ]
    assert S3Retries(lambda _: None).run(lambda: results.pop(0)) == "done"
