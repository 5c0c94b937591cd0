"""
Fakes, builders and tools of the tests; tested themselves in `tests/unit/support/`.

Modules that tests of every area use:

    builders      events, one line each: a test names some fields and leaves the rest to defaults
    engines       an engine over a topic in memory, on an event loop with virtual time
    virtual_time  an event loop whose time passes only when nothing else can happen
    manual_clock  a clock that moves only when a test says so
    memory        the peak of traced memory that a block may take
    blocking      finds calls of ours that block the event loop
    forks         forked children of a test

Packages, each of which lists its modules in its `__init__`:

    records       record values of the metadata topic, record batches, histories of events
    fuzzing       the fuzzer: `python -m tests.support.fuzzing.fuzz --count 1000000 --seed 1`
    judge         the judge of `rlmm serve` under kills: `python -m tests.support.judge`
    logs          metadata logs that fail, and processes that write to logs until they are killed
    engine        shards, snapshots, and answers of an engine; see `engines`, too
    server        the frame server and the HTTP server, and clients of both
    java_client   the client in Java, written from `docs/wire-protocol.md` alone
    kafka         Kafka in this process: brokers, topics, settings
    plugin        a broker that runs on rlmm
    cli           commands that look at the state, called in this process
    stores        object stores, and the objects of segments
    partitions    the local files of users' partitions
    tier          jobs over the tier: copy, verify, audit, expire, adopt, rebuild, read plans
    datasource    the Spark data source, mostly without Spark
    spark         Spark on this machine
    repository    the tree itself
"""
