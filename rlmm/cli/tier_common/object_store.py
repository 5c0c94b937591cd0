"""The flags of an object store, and the store that they name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from rlmm.cli.common.option_kinds import file_option, switch, text_option
from rlmm.errors import ConfigError
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import parse_store, require_libraries
from spark_tiering.stores.s3_settings import BucketEncryption, S3Settings

if TYPE_CHECKING:
    from spark_tiering.stores.opening import StoreSettings

_FILE = click.Path(dir_okay=False, path_type=str)
_STORE_HELP = "The object store. A prefix is put before keys as it is: end it with a slash."
_STORE_FORM = "s3://BUCKET/PREFIX|FOLDER"
_OF_STORE = (
    text_option("--prefix", None, "The prefix of keys, for a store in a folder."),
    text_option("--endpoint", "URL", "The endpoint of a store other than Amazon S3."),
    text_option("--region", None, "The region of the bucket; by default as boto3 finds it."),
    text_option("--profile", None, "The profile in the configuration files of boto3."),
    switch("--path-style", "Put the bucket into the path, not into the host name."),
    file_option("--store-ca-file", "CA certificates for the endpoint."),
    click.option(
        "--encryption", type=click.Choice(["bucket", "sse-s3", "sse-kms"]), default="bucket",
        show_default=True, help="The server-side encryption of new objects.",
    ),
    text_option("--kms-key-id", None, "The key for sse-kms; by default that of the bucket."),
    switch("--requester-pays", "Pay for the requests to the bucket."),
    text_option(
        "--storage-class", None, "The storage class of new objects; by default that of the bucket."
    ),
    click.option(
        "--no-conditional-puts", is_flag=True,
        help="For endpoints that ignore conditional puts: look before each write.",
    ),
)  # fmt: skip
STORE = (
    click.option("--store", required=True, metavar=_STORE_FORM, help=_STORE_HELP),
    *_OF_STORE,
)
_ENCRYPTIONS = {
    "bucket": BucketEncryption.OF_BUCKET,
    "sse-s3": BucketEncryption.S3,
    "sse-kms": BucketEncryption.KMS,
}


@dataclass(frozen=True, slots=True)
class StoreChoice:
    settings: StoreSettings
    prefix: str


def store_flags(*, is_required: bool) -> list[Any]:
    name = click.option("--store", required=is_required, metavar=_STORE_FORM, help=_STORE_HELP)
    return [name, *_OF_STORE]


def store_of(flags: dict[str, Any]) -> StoreChoice:
    """Raise `ConfigError` for contradicting flags, and `EngineUnfit` without a library."""
    template = S3Settings(
        "of-the-address",
        endpoint=flags["endpoint"],
        region=flags["region"],
        profile=flags["profile"],
        is_path_style=flags["path_style"],
        ca_file=flags["store_ca_file"],
        encryption=_ENCRYPTIONS[flags["encryption"]],
        kms_key_id=flags["kms_key_id"],
        is_requester_pays=flags["requester_pays"],
        storage_class=flags["storage_class"],
        has_conditional_puts=not flags["no_conditional_puts"],
    )
    settings, prefix = parse_store(flags["store"], template)
    if isinstance(settings, LocalSettings) and template != S3Settings(template.bucket):
        msg = f"the store {settings.folder} is a folder, and something is said that only a bucket "
        msg += "has (endpoint, region, encryption, ...): a bucket is s3://BUCKET/PREFIX"
        raise ConfigError(msg)
    if prefix and flags["prefix"]:
        msg = f"two prefixes: {prefix!r} in the address of the store, {flags['prefix']!r} beside it"
        raise ConfigError(msg)
    require_libraries(settings)
    return StoreChoice(settings, prefix or flags["prefix"])
