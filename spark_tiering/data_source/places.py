"""The places of the list of segments and of their bytes, from options. Pure, no credentials."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import parse_store
from spark_tiering.stores.s3_settings import S3Settings

if TYPE_CHECKING:
    from spark_tiering.data_source.option_values import ReaderOptions
    from spark_tiering.stores.opening import StoreSettings

_BUCKET_ALONE: Final = (
    "endpoint", "region", "profile", "pathStyle", "storeCaFile", "requesterPays",
)  # fmt: skip
_SIDECAR_ALONE: Final = (
    "cluster", "tokenFile", "tls", "sidecarCaFile", "sidecarCertFile", "sidecarKeyFile",
    "plaintextToken",
)  # fmt: skip
_LISTS: Final = ("plan", "sidecar", "embedded", "logDirs")
PLACE_OPTIONS: Final = (
    "store", "prefix", *_BUCKET_ALONE, *_LISTS, "planToken", *_SIDECAR_ALONE, "keyRing",
)  # fmt: skip


class ListKind(StrEnum):
    PLAN = "plan"
    SIDECAR = "sidecar"
    EMBEDDED = "embedded"
    LOG_DIRS = "logDirs"
    MANIFESTS = "manifests"


@dataclass(frozen=True, slots=True)
class SidecarPlace:
    address: str
    cluster_id: str = ""
    token_file: str = ""
    is_tls: bool = False
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    is_plaintext_token: bool = False


@dataclass(frozen=True, slots=True)
class TierLocation:
    """Names the source of the list of segments, and the location of their bytes."""

    kind: ListKind
    store: StoreSettings | None = None
    """None for log folders alone: their bytes are in them."""
    prefix: str = ""
    plan: str = ""
    """A file that `rlmm tier export` wrote."""
    plan_token: str = ""
    sidecar: SidecarPlace | None = None
    embedded: str = ""
    log_dirs: tuple[str, ...] = ()
    key_ring: str = ""
    """A file, on every machine that reads, with the keys of encrypted segments."""


def parse_place(options: ReaderOptions) -> TierLocation:
    given = [name for name in _LISTS if name in options]
    if len(given) > 1:
        msg = f"{' and '.join(given)}: one alone can tell which segments there are"
        raise ConfigError(msg)
    kind = ListKind(given[0]) if given else ListKind.MANIFESTS
    if kind is not ListKind.SIDECAR:
        _refuse_beside(options, _SIDECAR_ALONE, "sidecar")
    if kind is not ListKind.PLAN:
        _refuse_beside(options, ("planToken",), "plan")
    if kind is ListKind.LOG_DIRS:
        _refuse_beside(options, ("store", "prefix", *_BUCKET_ALONE, "keyRing"), "store, in which "
                       "log folders are not")  # fmt: skip
        folders = options.words("logDirs")
        if not folders:
            msg = "logDirs names no folder"
            raise ConfigError(msg)
        return TierLocation(kind, log_dirs=folders)
    store, prefix = _store(options)
    return TierLocation(
        kind,
        store,
        prefix,
        options.text("plan"),
        options.text("planToken"),
        _sidecar(options) if kind is ListKind.SIDECAR else None,
        options.text("embedded"),
        key_ring=options.text("keyRing"),
    )


def _store(options: ReaderOptions) -> tuple[StoreSettings, str]:
    address = options.text("store")
    if not address:
        msg = (
            "no segments are named: store is s3://BUCKET/PREFIX or a folder, logDirs are log "
            "folders of brokers (a path is not looked at)"
        )
        raise ConfigError(msg)
    given = [name for name in _BUCKET_ALONE if name in options]
    template = S3Settings(
        "of-the-address",
        endpoint=options.text("endpoint"),
        region=options.text("region"),
        profile=options.text("profile"),
        is_path_style=options.flag("pathStyle", default=False),
        ca_file=options.text("storeCaFile"),
        is_requester_pays=options.flag("requesterPays", default=False),
    )
    settings, prefix = parse_store(address, template)
    if isinstance(settings, LocalSettings):
        if given:
            msg = f"the store is a folder, and {given[0]} is for buckets"
            raise ConfigError(msg)
        # Who reads makes no folder, and every worker has to find the same one.
        settings = LocalSettings(Path(settings.folder).absolute(), is_made=False)
    beside = options.text("prefix")
    if prefix and beside:
        msg = f"two prefixes: {prefix!r} in the address of the store, {beside!r} beside it"
        raise ConfigError(msg)
    return settings, prefix or beside


def _sidecar(options: ReaderOptions) -> SidecarPlace:
    address = options.text("sidecar")
    if not address:
        msg = "sidecar is the address of a service, host:port or a socket"
        raise ConfigError(msg)
    return SidecarPlace(
        address,
        options.text("cluster"),
        options.text("tokenFile"),
        options.flag("tls", default=False),
        options.text("sidecarCaFile"),
        options.text("sidecarCertFile"),
        options.text("sidecarKeyFile"),
        options.flag("plaintextToken", default=False),
    )


def _refuse_beside(options: ReaderOptions, names: tuple[str, ...], what: str) -> None:
    for name in names:
        if name in options:
            msg = f"{name} says something of a {what}, and none is named"
            raise ConfigError(msg)
