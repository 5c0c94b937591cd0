"""
Shards, snapshots, and answers of an engine; see `engines`, too.

    engine_questions       refusals, ids and statistics of an engine in one call
    claims                 acknowledgements and answers of an engine, compared with its log
    broker_writers         writers that copy and delete segments as brokers do
    chosen                 the engine that a run tests
    changes_between        calls to two engines between their record sets
    equality               both engines, seed by seed: `python -m tests.support.engine.equality`
    pages                  shards with many segments, and listings of them by page
    shards                 shards that are validated after every test: a pytest plugin
    snapshots              shards to save, disks that crash while they are saved
    snapshot_process       processes that write snapshots until they are killed
    released_snapshots     snapshots as a release wrote them
    plain_snapshot_reader  a reader written from `docs/snapshot-format.md` alone
"""
