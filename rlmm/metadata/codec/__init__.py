"""Record values of `__remote_log_metadata` to events and back, byte for byte Kafka's own form."""

from rlmm.metadata.codec.decoding import decode
from rlmm.metadata.codec.encoding import encode, encode_any

__all__ = ["decode", "encode", "encode_any"]
