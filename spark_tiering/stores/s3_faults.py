"""
What can go wrong in one request to S3, by class: whether it may have happened, whether trying again
may help, and what it means where it stays.

Every exception of the client library is sorted here and nowhere else. Codes of errors are S3's own
and those of stores that follow it; what is not known is sorted by its HTTP status.
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


class FaultKind(StrEnum):
    """What went wrong in one request. A closed list."""

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


UNCERTAIN: Final = frozenset((FaultKind.TIMED_OUT, FaultKind.CUT, FaultKind.SERVER))
"""After these nobody knows whether the request was carried out."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong in a request, with the exception that said so."""

    kind: FaultKind
    detail: str
    cause: BaseException | None = None

    @property
    def is_uncertain(self) -> bool:
        """Whether the request may have been carried out all the same."""
        return self.kind in UNCERTAIN

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


_CODES: Final[Mapping[FaultKind, tuple[str, ...]]] = {
    FaultKind.THROTTLED: (
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
    FaultKind.CUT: ("RequestTimeout", "IncompleteBody"),
    FaultKind.DAMAGED: (
        "BadDigest",
        "InvalidDigest",
        "XAmzContentSHA256Mismatch",
        "XAmzContentChecksumMismatch",
    ),
    FaultKind.RACING: ("ConditionalRequestConflict", "OperationAborted"),
    FaultKind.EXISTS: ("PreconditionFailed",),
    FaultKind.NO_KEY: ("NoSuchKey", "NoSuchVersion"),
    FaultKind.NO_BUCKET: ("NoSuchBucket",),
    FaultKind.NO_UPLOAD: ("NoSuchUpload",),
    FaultKind.NO_RANGE: ("InvalidRange",),
    FaultKind.ARCHIVED: ("InvalidObjectState",),
    FaultKind.TOO_LARGE: ("EntityTooLarge", "MaxMessageLengthExceeded"),
    FaultKind.NO_RIGHTS: (
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
    FaultKind.WRONG_PLACE: (
        "AuthorizationHeaderMalformed",
        "IllegalLocationConstraintException",
        "PermanentRedirect",
        "TemporaryRedirect",
    ),
    FaultKind.UNSUITABLE: ("NotImplemented", "MethodNotAllowed"),
}
_KIND_OF_CODE: Final = {code: kind for kind, codes in _CODES.items() for code in codes}
_KIND_OF_STATUS: Final = {
    301: FaultKind.WRONG_PLACE,
    307: FaultKind.WRONG_PLACE,
    401: FaultKind.NO_RIGHTS,
    403: FaultKind.NO_RIGHTS,
    404: FaultKind.NO_KEY,
    405: FaultKind.UNSUITABLE,
    408: FaultKind.CUT,
    409: FaultKind.RACING,
    412: FaultKind.EXISTS,
    413: FaultKind.TOO_LARGE,
    416: FaultKind.NO_RANGE,
    429: FaultKind.THROTTLED,
    501: FaultKind.UNSUITABLE,
    503: FaultKind.THROTTLED,
}
_KIND_OF_EXCEPTION: Final[tuple[tuple[tuple[type[Exception], ...], FaultKind], ...]] = (
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
        FaultKind.NO_CREDENTIALS,
    ),
    (
        (aws.EndpointConnectionError, aws.ConnectTimeoutError, aws.ProxyConnectionError),
        FaultKind.UNREACHED,
    ),
    ((aws.ReadTimeoutError,), FaultKind.TIMED_OUT),
    ((aws.FlexibleChecksumError,), FaultKind.DAMAGED),
    (
        (
            aws.HTTPClientError,
            aws.ConnectionError,
            aws.IncompleteReadError,
            ResponseParserError,
            OSError,
        ),
        FaultKind.CUT,
    ),
    ((aws.BotoCoreError, ValueError), FaultKind.WRONG_SETTING),
)
SORTED: Final = (aws.ClientError, aws.BotoCoreError, ResponseParserError, OSError, ValueError)
"""What a request may raise."""


def sort_fault(operation: str, error: Exception) -> Fault:
    """What an exception of the client library means for one request."""
    if isinstance(error, aws.ClientError):
        return _sort_answer(operation, error)
    detail = f"{operation}: {error}"
    if isinstance(error, aws.SSLError) and "certificate" in str(error).lower():
        return Fault(FaultKind.WRONG_SETTING, detail, error)
    kind = next(kind for classes, kind in _KIND_OF_EXCEPTION if isinstance(error, classes))
    return Fault(kind, detail, error)


def _sort_answer(operation: str, error: aws.ClientError) -> Fault:
    told = error.response.get("Error", {})
    code = str(told.get("Code", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    kind = _KIND_OF_CODE.get(code) or _KIND_OF_STATUS.get(status)
    if kind is None:
        kind = FaultKind.SERVER if status >= 500 or status < 300 else FaultKind.WRONG_SETTING
    detail = f"{operation}: {status} {code} {told.get('Message', '')}".rstrip()
    return Fault(kind, detail, error)


def raise_fault(fault: Fault, store: str) -> NoReturn:
    """Raise what a fault that stayed means for the store as a whole."""
    error: RlmmError
    match fault.kind:
        case FaultKind.NO_CREDENTIALS:
            places = ", ".join(CREDENTIAL_CHAIN)
            error = CredentialsAbsent(f"{store}: {fault.detail}; looked for in: {places}")
        case FaultKind.NO_BUCKET:
            error = StoreAbsent(f"{store}: there is no such bucket ({fault.detail})")
        case FaultKind.NO_RIGHTS:
            error = StoreNotPermitted(f"{store}: {fault.detail}")
        case FaultKind.WRONG_PLACE:
            error = ConfigError(f"{store}: another region or endpoint is right ({fault.detail})")
        case FaultKind.WRONG_SETTING:
            error = ConfigError(f"{store}: {fault.detail}")
        case FaultKind.UNSUITABLE:
            error = StoreUnsuitable(f"{store}: the store does not know this ({fault.detail})")
        case _:
            error = StoreUnavailable(f"{store}: {fault}")
    raise error from fault.cause
