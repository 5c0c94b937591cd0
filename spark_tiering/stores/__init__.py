"""
Where objects are kept: one protocol, over a folder and over S3.

    store = open_store(place)             # in the worker: places travel, stores do not
    outcome = store.put(key, content)     # written, there already, conflict, unknown or refused

By module, bottom up:

    results            what became of a call, as values; what a store tells of an object
    content            bytes that can be sent again, and streams that cannot
    protocol           what every store does
    object_reading     a whole object in pieces, and whether what is there is what it should be
    local              a folder
    s3_settings  everything that can be said of a bucket; the credential chain
    s3_faults    what can go wrong in one request, by class
    s3_policies  what is tried again, and how, by that class
    s3_body      a content as the body of one request
    s3_calls     one request to S3, and its repeats
    s3_compare   whether what lies in a bucket is what was to be written
    s3_parts     objects written in parts, and uploads that nobody completed
    s3           a bucket
    s3_probe     what an endpoint really does
    abandoned_uploads  ends what writers left behind
    opening            from a place to its store, one for a process

Invariants:

- A key is written once: no call changes or replaces an object. Only `delete` takes one away.
- An object that is listed is whole.
- What became of a write is a value; an error says that the store as a whole could not be asked,
  and then the write surely did not happen.
- No store, client or credential is ever pickled, and no credential is a setting.
- Memory is bounded by settings, whatever an object's size.

May be imported by every package above it in the layers of `pyproject.toml`.

- `conditional_put_probe`: Whether a store keeps the first of two writers' objects, seen with
  objects of our own.
- `local_files`: Files and folders below a local store.
- `local_settings`: What can be said of a folder as a store.
- `s3`: A bucket as a store.
- `s3_body`: A content as the body of one request.
- `s3_calls`: One request to S3, and its repeats.
- `s3_faults`: What can go wrong in one request to S3, by class.
- `s3_parts`: Objects that are written in parts, by hand.
- `s3_policies`: What is tried again, and how.
- `s3_probe`: What an endpoint really does with conditions and checksums, seen with objects of our
  own.
- `s3_settings`: Everything that can be said of a bucket.
- `s3_writing`: One object in one conditional request, and what became of it when nobody said.
"""
