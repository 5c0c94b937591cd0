"""The refusal of a request: from an error to the status, headers and body of its answer. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rlmm import errors
from rlmm.http.schemas import ErrorView, RefusedView
from rlmm.wire.errors import error_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.errors import RlmmError

STATUSES: Final[Mapping[type[errors.RlmmError], int]] = {
    errors.NotPermitted: 403,
    errors.RequestError: 400,
    errors.WrongCluster: 404,
    errors.NotFound: 404,
    errors.NotSealed: 409,
    errors.UnknownMethod: 405,
    errors.NotAssigned: 421,
    errors.NotReady: 503,
    errors.OverBudget: 503,
    errors.TooBusy: 429,
    errors.Unresolved: 503,
    errors.LogUnavailable: 503,
    errors.LogError: 502,
}
"""The nearest class above an error counts, else 500; 421: another service has the partition."""
_RETRY_S: Final = 1
"""When to ask again where the error does not say."""


def status_of(error: RlmmError) -> int:
    return next((STATUSES[base] for base in type(error).__mro__ if base in STATUSES), 500)


def refused_view(error: RlmmError) -> RefusedView:
    values: Any = error_value(error)
    return RefusedView(ErrorView(*values))


def headers_of(error: RlmmError, status: int) -> dict[str, str]:
    headers = {}
    if error.retriable:
        wait_ms = error.retry_after_ms if isinstance(error, errors.NotReady) else 0
        headers["Retry-After"] = str(max(_RETRY_S, -(-wait_ms // 1_000)))
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="rlmm"'
    return headers
