"""The settings of a bucket. Pure, without credentials: see `CREDENTIAL_CHAIN`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from rlmm.errors import ConfigError

CREDENTIAL_CHAIN = (
    "env",
    "assume-role",
    "assume-role-with-web-identity",
    "sso",
    "shared-credentials-file",
    "login",
    "custom-process",
    "config-file",
    "ec2-credentials-file",
    "boto-config",
    "container-role",
    "iam-role",
)
"""
Where credentials are looked for, in this order, by boto3: `AWS_ACCESS_KEY_ID` and its companions in
the environment; a role of the profile, by another profile or by a web identity token; single
sign-on; `~/.aws/credentials`; a login session; a process of the profile; `~/.aws/config`; the old
files of EC2 and boto; the role of the container; the role of the machine.
"""

KIB, MIB, GIB = 1024, 1024 * 1024, 1024 * 1024 * 1024
SINGLE_PUT_BYTES_MAX = 5 * GIB
PART_BYTES_MIN, PART_BYTES_MAX = 5 * MIB, 512 * MIB
PARTS_MAX = 10_000

STORAGE_CLASSES = frozenset(
    (
        "",
        "STANDARD",
        "REDUCED_REDUNDANCY",
        "STANDARD_IA",
        "ONEZONE_IA",
        "INTELLIGENT_TIERING",
        "GLACIER_IR",
        "EXPRESS_ONEZONE",
        "OUTPOSTS",
    )
)
"""The classes that can be written to: all whose objects are read at once."""
ARCHIVE_CLASSES = frozenset(("GLACIER", "DEEP_ARCHIVE"))
"""Classes whose objects no broker can read until they are restored."""


class BucketEncryption(StrEnum):
    OF_BUCKET = ""
    """As the bucket does by itself."""
    S3 = "AES256"
    """SSE-S3: with keys of the store."""
    KMS = "aws:kms"
    """SSE-KMS: with a key of KMS, the bucket's or account's where none is named."""


class BodySigning(StrEnum):
    """Tells whether the signature covers the body, which is read once more for that."""

    AUTO = "auto"
    """Not over TLS, which protects it, and not to this machine; else it does."""
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class S3Settings:
    bucket: str
    endpoint: str = ""
    """Of a store that is not Amazon's; empty: `AWS_ENDPOINT_URL_S3`, else the region's own."""
    region: str = ""
    """Empty: of the profile or the environment."""
    profile: str = ""
    """A name in the files of `CREDENTIAL_CHAIN`; empty: `AWS_PROFILE`, else the default one."""
    is_path_style: bool = False
    """Bucket in the path instead of the host name: most stores that are not Amazon's need it."""
    ca_file: str = ""
    """Authorities for TLS, where they are not the system's."""
    encryption: BucketEncryption = BucketEncryption.OF_BUCKET
    kms_key_id: str = ""
    is_requester_pays: bool = False
    storage_class: str = ""
    """Empty: the bucket's own. One that must be restored to be read is not possible."""
    signing: BodySigning = BodySigning.AUTO
    single_put_bytes: int = GIB
    """Longer contents are sent in parts. One request leaves nothing behind half-done."""
    part_bytes: int = 32 * MIB
    """In memory once for each write in parts; what a repeat sends again."""
    connect_timeout_ms: int = 10_000
    read_timeout_ms: int = 60_000
    """The longest silence, not the longest request."""
    has_conditional_puts: bool = True
    """Off for endpoints that ignore the condition: a write looks first, which is no protection."""

    def __post_init__(self) -> None:
        problem = self._problem()
        if problem:
            raise ConfigError(problem)

    def _problem(self) -> str:
        address = urlsplit(self.endpoint)
        checks = {
            f"no bucket has the name {self.bucket!r}": not self.bucket or "/" in self.bucket,
            "the endpoint is no http or https address": bool(self.endpoint)
            and (address.scheme not in ("http", "https") or not address.hostname),
            # Not repeated in the message: it may be a secret.
            "the endpoint has a user or a password in it: credentials are no setting": bool(
                address.username or address.password
            ),
            f"a KMS key needs the encryption {BucketEncryption.KMS.value}": bool(self.kms_key_id)
            and self.encryption is not BucketEncryption.KMS,
            f"objects in the storage class {self.storage_class!r} cannot be read by a broker": (
                self.storage_class not in STORAGE_CLASSES
            ),
            f"single puts of {self.single_put_bytes} bytes, at most {SINGLE_PUT_BYTES_MAX}": (
                not 0 <= self.single_put_bytes <= SINGLE_PUT_BYTES_MAX
            ),
            f"parts of {self.part_bytes} bytes, {PART_BYTES_MIN} to {PART_BYTES_MAX} are taken": (
                not PART_BYTES_MIN <= self.part_bytes <= PART_BYTES_MAX
            ),
            "time-outs have to be positive": min(self.connect_timeout_ms, self.read_timeout_ms)
            <= 0,
        }
        return next((text for text, is_wrong in checks.items() if is_wrong), "")

    def is_body_signed(self, endpoint: str) -> bool:
        """Return whether bodies are signed that go to *endpoint*, which may come from elsewhere."""
        if self.signing is not BodySigning.AUTO:
            return self.signing is BodySigning.ALWAYS
        address = urlsplit(endpoint)
        is_here = address.hostname in ("localhost", "127.0.0.1", "::1")
        return address.scheme == "http" and not is_here

    @property
    def address(self) -> str:
        return f"s3://{self.bucket}" + (f" at {self.endpoint}" if self.endpoint else "")
