"""
Where objects are kept: one protocol, over a folder and over S3.

    store = open_store(place)             # in the worker: places travel, stores do not
    outcome = store.put(key, content)     # written, there already, conflict, unknown or refused

By module, bottom up:

    outcomes     what became of a call, as values; what a store tells of an object
    content      bytes that can be sent again, and streams that cannot
    protocol     what every store does
    reading      a whole object in pieces, and whether what is there is what it should be
    local        a folder
    s3_settings  everything that can be said of a bucket; the credential chain
    s3_faults    what can go wrong in one request, by class
    s3_policies  what is tried again, and how, by that class
    s3_body      a content as the body of one request
    s3_calls     one request to S3, and its repeats
    s3_compare   whether what lies in a bucket is what was to be written
    s3_parts     objects written in parts, and uploads that nobody completed
    s3           a bucket
    s3_probe     what an endpoint really does
    sweeping     ends what writers left behind
    opening      from a place to its store, one for a process

Invariants:

- A key is written once: no call changes or replaces an object. Only `delete` takes one away.
- An object that is listed is whole.
- What became of a write is a value; an error says that the store as a whole could not be asked,
  and then the write surely did not happen.
- No store, client or credential is ever pickled, and no credential is a setting.
- Memory is bounded by settings, whatever an object's size.
"""
