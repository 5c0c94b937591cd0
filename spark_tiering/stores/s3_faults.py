"""
The faults of one request to S3, by class: may it have happened, does a retry help, which error.
Every exception of the client library is classified here; an unknown code by its HTTP status.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NoReturn

from botocore import exceptions as aws
from botocore.parsers import ResponseParserError

from rlmm.errors import (
    ConfigError,
    CredentialsAbsent,
    StoreAbsent,
    StoreNotPermitted,
    StoreUnavailable,
    StoreUnsuitable,
)
from spark_tiering.stores.s3_settings import CREDENTIAL_CHAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.errors import RlmmError


class S3FaultKind(StrEnum):
    THROTTLED = "throttled"
    """Refused for now, and surely not done."""
    UNREACHED = "unreached"
    """No connection came about, so surely not done."""
    TIMED_OUT = "timed-out"
    """No answer in time: done or not."""
    CUT = "cut"
    """The connection ended before the answer did: done or not."""
    SERVER = "server"
    """A fault of the store's own: done or not."""
    DAMAGED = "damaged"
    """What arrived was not what was sent: not done."""
    RACING = "racing"
    """Another writer is at the same key at this moment: not done."""
    EXISTS = "exists"
    """The condition does not hold: something is there."""
    NO_KEY = "no-key"
    NO_BUCKET = "no-bucket"
    NO_UPLOAD = "no-upload"
    NO_RANGE = "no-range"
    ARCHIVED = "archived"
    TOO_LARGE = "too-large"
    NO_CREDENTIALS = "no-credentials"
    NO_RIGHTS = "no-rights"
    WRONG_PLACE = "wrong-place"
    """Another region, or another address."""
    WRONG_SETTING = "wrong-setting"
    UNSUITABLE = "unsuitable"
    """The store does not know the request."""


UNCERTAIN: Final = frozenset((S3FaultKind.TIMED_OUT, S3FaultKind.CUT, S3FaultKind.SERVER))
"""After these it is unknown whether the store carried out the request."""


@dataclass(frozen=True, slots=True)
class S3Fault:
    """Describes the fault of a request, with the exception that reported it."""

    kind: S3FaultKind
    detail: str
    cause: BaseException | None = None

    @property
    def is_uncertain(self) -> bool:
        return self.kind in UNCERTAIN

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


_CODES: Final[Mapping[S3FaultKind, tuple[str, ...]]] = {
    S3FaultKind.THROTTLED: (
        "SlowDown",
        "SlowDownRead",
        "SlowDownWrite",
        "Throttling",
        "ThrottlingException",
        "RequestLimitExceeded",
        "TooManyRequests",
        "TooManyRequestsException",
        "BandwidthLimitExceeded",
        "ServiceUnavailable",
        "Busy",
    ),
    S3FaultKind.CUT: ("RequestTimeout", "IncompleteBody"),
    S3FaultKind.DAMAGED: (
        "BadDigest",
        "InvalidDigest",
        "XAmzContentSHA256Mismatch",
        "XAmzContentChecksumMismatch",
    ),
    S3FaultKind.RACING: ("ConditionalRequestConflict", "OperationAborted"),
    S3FaultKind.EXISTS: ("PreconditionFailed",),
    S3FaultKind.NO_KEY: ("NoSuchKey", "NoSuchVersion"),
    S3FaultKind.NO_BUCKET: ("NoSuchBucket",),
    S3FaultKind.NO_UPLOAD: ("NoSuchUpload",),
    S3FaultKind.NO_RANGE: ("InvalidRange",),
    S3FaultKind.ARCHIVED: ("InvalidObjectState",),
    S3FaultKind.TOO_LARGE: ("EntityTooLarge", "MaxMessageLengthExceeded"),
    S3FaultKind.NO_RIGHTS: (
        "AccessDenied",
        "AccountProblem",
        "AllAccessDisabled",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidToken",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
        "KMS.DisabledException",
        "KMS.KMSInvalidStateException",
        "KMS.NotFoundException",
    ),
    S3FaultKind.WRONG_PLACE: (
        "AuthorizationHeaderMalformed",
        "IllegalLocationConstraintException",
        "PermanentRedirect",
        "TemporaryRedirect",
    ),
    S3FaultKind.UNSUITABLE: ("NotImplemented", "MethodNotAllowed"),
}
_KIND_OF_CODE: Final = {code: kind for kind, codes in _CODES.items() for code in codes}
_KIND_OF_STATUS: Final = {
    301: S3FaultKind.WRONG_PLACE,
    307: S3FaultKind.WRONG_PLACE,
    401: S3FaultKind.NO_RIGHTS,
    403: S3FaultKind.NO_RIGHTS,
    404: S3FaultKind.NO_KEY,
    405: S3FaultKind.UNSUITABLE,
    408: S3FaultKind.CUT,
    409: S3FaultKind.RACING,
    412: S3FaultKind.EXISTS,
    413: S3FaultKind.TOO_LARGE,
    416: S3FaultKind.NO_RANGE,
    429: S3FaultKind.THROTTLED,
    501: S3FaultKind.UNSUITABLE,
    503: S3FaultKind.THROTTLED,
}
_KIND_OF_EXCEPTION: Final[tuple[tuple[tuple[type[Exception], ...], S3FaultKind], ...]] = (
    (
        (
            aws.NoCredentialsError,
            aws.NoAuthTokenError,
            aws.PartialCredentialsError,
            aws.CredentialRetrievalError,
            aws.TokenRetrievalError,
            aws.UnknownCredentialError,
            aws.ProfileNotFound,
            aws.SSOError,
            aws.LoginError,
        ),
        S3FaultKind.NO_CREDENTIALS,
    ),
    (
        (aws.EndpointConnectionError, aws.ConnectTimeoutError, aws.ProxyConnectionError),
        S3FaultKind.UNREACHED,
    ),
    ((aws.ReadTimeoutError,), S3FaultKind.TIMED_OUT),
    ((aws.FlexibleChecksumError,), S3FaultKind.DAMAGED),
    (
        (
            aws.HTTPClientError,
            aws.ConnectionError,
            aws.IncompleteReadError,
            ResponseParserError,
            OSError,
        ),
        S3FaultKind.CUT,
    ),
    ((aws.BotoCoreError, ValueError), S3FaultKind.WRONG_SETTING),
)
SORTED: Final = (aws.ClientError, aws.BotoCoreError, ResponseParserError, OSError, ValueError)


def sort_fault(operation: str, error: Exception) -> S3Fault:
    if isinstance(error, aws.ClientError):
        return _sort_answer(operation, error)
    detail = f"{operation}: {error}"
    if isinstance(error, aws.SSLError) and "certificate" in str(error).lower():
        return S3Fault(S3FaultKind.WRONG_SETTING, detail, error)
    kind = next(kind for classes, kind in _KIND_OF_EXCEPTION if isinstance(error, classes))
    return S3Fault(kind, detail, error)


def _sort_answer(operation: str, error: aws.ClientError) -> S3Fault:
    told = error.response.get("Error", {})
    code = str(told.get("Code", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    kind = _KIND_OF_CODE.get(code) or _KIND_OF_STATUS.get(status)
    if kind is None:
        kind = S3FaultKind.SERVER if status >= 500 or status < 300 else S3FaultKind.WRONG_SETTING
    detail = f"{operation}: {status} {code} {told.get('Message', '')}".rstrip()
    return S3Fault(kind, detail, error)


def raise_fault(fault: S3Fault, store: str) -> NoReturn:
    error: RlmmError
    match fault.kind:
        case S3FaultKind.NO_CREDENTIALS:
            places = ", ".join(CREDENTIAL_CHAIN)
            error = CredentialsAbsent(f"{store}: {fault.detail}; looked for in: {places}")
        case S3FaultKind.NO_BUCKET:
            error = StoreAbsent(f"{store}: there is no such bucket ({fault.detail})")
        case S3FaultKind.NO_RIGHTS:
            error = StoreNotPermitted(f"{store}: {fault.detail}")
        case S3FaultKind.WRONG_PLACE:
            error = ConfigError(f"{store}: another region or endpoint is right ({fault.detail})")
        case S3FaultKind.WRONG_SETTING:
            error = ConfigError(f"{store}: {fault.detail}")
        case S3FaultKind.UNSUITABLE:
            error = StoreUnsuitable(f"{store}: the store does not know this ({fault.detail})")
        case _:
            error = StoreUnavailable(f"{store}: {fault}")
    raise error from fault.cause
