"""
The bytes of a segment: in a tier, by its manifest, or in a broker's folder.

    with open_store(settings) as store:
        ring = process_key_ring(key_ring_settings)                      # or None
        source = open_tiered(store, segment, ("kafka/",), ring)         # one small request
        for piece in source.pieces(first_byte, last_byte): ...          # few ranged requests
        source.index(SegmentPart.OFFSET_INDEX)                          # None: there is none

    files = LogFolder("kafka-logs/orders-3")
    for listed in list_segments(files.facts()):
        source = FolderSegment(files, listed)                           # the same from here on

    for window in batch_windows(source, first_byte, last_byte):         # whole record batches
        window.position, window.content

Both are a `SegmentBytes`. Bytes of a log are those of the broker's file, in each form of the
tier: plain, chunks of zstd, encrypted, both. Ends of ranges are inclusive, and cut to the log's.

A fault raises `SegmentUnreadable`, at the place in the stream where it is noticed; the bytes
before it are right. It has a `fault` (a closed list), the key or file, and a detail, and
`finding_kind(fault)` is its stable code. It never leaves `spark_tiering`: the runner of a unit
turns it into a value. Faults of the store as a whole raise the store's errors, and files the log's.

By module, bottom up:

    faults     the faults of a read, as an exception that carries a value
    protocol   `SegmentBytes`, and as much of a store as is needed
    places     the keys under which a segment's objects may lie: prefixes change, objects stay
    key_files  a key ring from its files, once a process; what travels is the path
    tiered     a segment of a tier: `open_tiered`, `TieredSegment`
    log_files  a segment of a broker's folder: `FolderSegment`
    windows    pieces cut where record batches end

Invariants:

- Memory is bounded by one fetch (16 MiB) and a chunk, or one batch, never by a segment.
- A store's bytes are not trusted; they are checked as far as the form allows: lengths, frames,
  tags. The decoder checks the CRCs of batches.
- No key and no secret is part of a setting, a message or a pickle.

May be imported by `rlmm.cli`, `spark_tiering.data_source`, `spark_tiering.maintenance`.
"""
