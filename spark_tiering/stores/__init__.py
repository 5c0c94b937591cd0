"""
Object stores: one protocol, over a folder and over S3.

    results                results of calls, as values
    content                bytes that can be sent again, and streams that cannot
    protocol               the protocol of stores
    object_reading         a whole object in pieces, and compared with expected bytes
    conditional_put_probe  whether a store keeps the first of two writers' objects
    local_settings         settings of a folder as a store
    local_files            files and folders below a local store
    local                  a folder as a store
    s3_settings            settings of a bucket; the credential chain
    s3_faults              faults of one request, by class
    s3_policies            repeats of a request, by that class
    s3_body                a content as the body of one request
    s3_calls               one request to S3, and its repeats
    s3_single_put          an object in one conditional request, and whether it was written
    s3_parts               objects written in parts, and unfinished uploads
    s3_probe               behaviour of an endpoint: conditions and checksums
    s3                     a bucket as a store
    abandoned_uploads      ends uploads that their writers abandoned
    opening                from an address to its store, one for a process

Invariants:
- A key is written once: no call changes or replaces an object. Only `delete` takes one away.
- An object that is listed is whole.
- The result of a write is a value; an error says that the store as a whole cannot be reached,
  and then the write surely did not happen.
- No store, client or credential is ever pickled, and no credential is a setting.
- Memory is bounded by settings, whatever an object's size.

May be imported by every package above it in the layers of `pyproject.toml`.
"""
