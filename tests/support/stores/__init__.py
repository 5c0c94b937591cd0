"""
Object stores, and the objects of segments.

    stores_under_test   stores of every kind, held to one contract
    memory_store        a store in memory whose next calls can be made to fail
    findings            findings of the layout, compared in one line
    failing_stores      a store and a source of files that fail at any of their calls
    s3_stub             an S3 server in this process that fails on command
    s3_stub_requests    one connection to it
    s3_sink             an S3 server that keeps only lengths and checksums
    s3_servers          moto and SeaweedFS as processes
    interleavings       every order in which the calls of several actors reach a store
    inventories         inventories of a bucket as S3 writes them
    segment_objects     objects of segments in a store, with their manifests
    tiered_bytes        one tiered segment stored plain, compressed, encrypted, and both
    encrypted_segments  segments as Kafka's storage plugin encrypts them, and key rings
    recorded_manifests  the segment that the manifests in `tests/data` describe
"""
