# Only what this project uses; the library has no annotations.
from typing import Literal, TypedDict

class _S3(TypedDict, total=False):
    addressing_style: Literal["auto", "path", "virtual"]
    payload_signing_enabled: bool

class _Retries(TypedDict, total=False):
    total_max_attempts: int

class Config:
    def __init__(
        self,
        *,
        connect_timeout: float = ...,
        read_timeout: float = ...,
        max_pool_connections: int = ...,
        retries: _Retries = ...,
        s3: _S3 = ...,
        tcp_keepalive: bool = ...,
        user_agent_extra: str = ...,
        request_checksum_calculation: Literal["when_supported", "when_required"] = ...,
        response_checksum_validation: Literal["when_supported", "when_required"] = ...,
    ) -> None: ...
