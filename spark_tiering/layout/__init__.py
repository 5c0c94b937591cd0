"""
The objects of a tiered segment, in the layout that the Aiven plugin reads and writes. No I/O.

    findings             faults of objects and manifests, as values
    frames               one zstd frame at a time
    digests              SHA-256 and CRC-64/NVME of bytes that pass by
    chunk_sizes          sizes of chunks as one text
    chunk_index          where each chunk lies, before and after it was stored
    segment_indexes      where each part lies in the object of indexes
    manifest             a manifest, as values
    encryption           data keys opened, and the parts that they seal
    key_ring             private keys by the ids that manifests name
    strict_json          untrusted JSON, read into typed structs in bounded memory
    manifest_document    the bytes of a manifest, and a manifest from its bytes
    custom_metadata      the custom metadata that a broker keeps for a segment
    metadata_recovery    a segment's metadata out of its manifest
    object_making        the object of the log and the object of the indexes, from their sources
    range_reading        from bytes of a log to ranges of an object, and back
    object_verification  objects of a store against manifest and metadata
    object_names         names of the objects of one segment, and their order

Invariants:

- What is written, an unmodified plugin reads; what it cannot read is a finding here as well.
- A fault of bytes is a `LayoutFinding`; `InvalidArgument` is for arguments of a caller.
- No length in the bytes is believed. Memory is bounded by constants.
- Equal input becomes equal bytes.

May be imported by every package above it in the layers of `pyproject.toml`.
"""
