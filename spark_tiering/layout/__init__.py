"""
The objects of a tiered segment, in the layout that the Aiven plugin reads and writes: made, read
back and checked. Nothing here does I/O.

    log = LogObject(pieces, size_bytes, is_compressed=True)
    ...                             # send what iterating over it gives; then
    log.made                        # the chunks, and the digests of both sides

By module, bottom up:

    findings             what can be wrong, as values
    frames               one zstd frame at a time
    digests              SHA-256 and CRC-64/NVME of bytes that pass by
    chunk_sizes          sizes of chunks as one text
    chunk_index          where each chunk lies, before and after it was stored
    segment_indexes      where each part lies in the object of indexes
    manifest             what a manifest says, and its bytes
    encryption           data keys opened, and the parts that they seal
    key_ring             private keys by the ids that manifests name
    strict_json          untrusted JSON, read into typed structs in bounded memory
    json_fields          JSON that somebody else wrote, field by field
    manifest_reading     a manifest from its bytes
    custom_metadata      what a broker keeps beside a segment's metadata
    metadata_recovery    a segment's metadata out of its manifest
    object_making        the object of the log and the object of the indexes, from their sources
    range_reading        from bytes of a log to ranges of an object, and back
    object_verification  what a store has against what manifest and metadata say

The names of the objects, and their order, are in `spark_tiering.layout.object_names`.

Invariants:

- What is written, an unmodified plugin reads; what it cannot read is a finding here as well.
- What is wrong with bytes is a `LayoutFinding`; `InvalidArgument` is for what a caller asks.
- No length in the bytes is believed. Memory is bounded by constants.
- Equal input becomes equal bytes.

May be imported by every package above it in the layers of `pyproject.toml`.

- `object_names`: Names of the objects of one tiered segment.
"""
