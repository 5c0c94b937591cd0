"""The store of objects: a bucket, or a folder in its place."""

from __future__ import annotations

from rlmm.errors.root import RlmmError


class StoreError(RlmmError):
    """Something about the store of objects as a whole, whatever the object."""

    code = "store"
    exit_code = 3


class StoreUnavailable(StoreError):
    """The store did not answer, or asked for patience too often; the call changed nothing."""

    code = "store-unavailable"
    retriable = True


class StoreAbsent(StoreError):
    """There is no such bucket, or no such folder; the message names it."""

    code = "store-absent"


class StoreNotPermitted(StoreError):
    """The store knows who is asking and refuses; the message names the operation."""

    code = "store-not-permitted"


class CredentialsAbsent(StoreError):
    """No credentials were found where they are looked for; the message names the places."""

    code = "credentials-absent"


class StoreUnsuitable(StoreError):
    """The store cannot do what is needed of it, or does it otherwise than it says."""

    code = "store-unsuitable"
