"""Ids of jobs, such as `20261119T014512Z-host-4f09a2`: they sort by start time and fit in keys."""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime

HOST_CHARACTERS_MAX = 60

_JOB_ID = re.compile(
    rf"([0-9]{{8}}T[0-9]{{6}}Z)-[a-z0-9.-]{{1,{HOST_CHARACTERS_MAX}}}-[0-9a-f]{{6}}"
)
_TIME = "%Y%m%dT%H%M%SZ"
_NOT_IN_HOSTS = re.compile(r"[^a-z0-9.-]+")


def new_job_id(now_ms: int, host: str, drawn: str | None = None) -> str:
    """Make the id of a job that begins now; *drawn* are its last six digits, for tests."""
    began = datetime.fromtimestamp(now_ms // 1_000, UTC).strftime(_TIME)
    where = _NOT_IN_HOSTS.sub("-", host.lower())[:HOST_CHARACTERS_MAX].strip("-") or "host"
    return f"{began}-{where}-{secrets.token_hex(3) if drawn is None else drawn}"


def began_ms(job_id: str) -> int | None:
    """Return when the job began, by the clock of its host; `None` for a text that is no job id."""
    found = _JOB_ID.fullmatch(job_id)
    if found is None:
        return None
    try:
        began = datetime.strptime(found[1], _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(began.timestamp()) * 1_000
