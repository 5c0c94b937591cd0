"""
The bytes of a segment: in a tier, by its manifest, or in a broker's folder.

    source = open_tiered(store, segment, ("kafka/",), ring)         # one small request
    source = FolderSegment(LogFolder("kafka-logs/orders-3"), listed)
    for window in batch_windows(source, first_byte, last_byte): ... # both inclusive, cut to the log

A fault raises `SegmentUnreadable`, with a `fault` of a closed list; the bytes before it are right.
It never leaves `spark_tiering`. Faults of the store as a whole raise the store's errors.

    protocol   `SegmentBytes`, as much of a store as is needed, and the faults of a read
    key_files  a key ring from its files, once a process; what travels is the path
    tiered     a segment of a tier: `open_tiered`, `TieredSegment`, `KeyPlaces`
    log_files  a segment of a broker's folder: `FolderSegment`
    windows    pieces cut where record batches end

Invariants:

- Memory is bounded by one fetch (16 MiB) and a chunk, or one batch, never by a segment.
- A store's lengths, frames and tags are checked. The decoder checks the CRCs of batches.
- No key and no secret is part of a setting, a message or a pickle.

May be imported by `rlmm.cli`, `spark_tiering.data_source`, `spark_tiering.maintenance`.
"""
