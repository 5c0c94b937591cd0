"""
Audit: what lies in the store beside what the metadata says, beside what the cluster knows.

    with open_tier(request) as tier, Audit(tier, AuditOptions(min_age_ms=...)) as audit:
        report = audit.run()                         # Clean, Dirty or Corrupt, and why
        for orphan in audit.orphans(): ...           # with their proofs
        Deleting(tier, audit.rules, proofs=USUAL_PROOFS, is_dry=True).run(audit.orphans)

By module, bottom up:

    verdicts            the closed sets of verdicts: of a set of objects, of its proof, of the whole
    segment_facts       what is known of segments and partitions, in few bytes
    object_set_verdict  the verdict on the objects of one segment
    extents             what no segment has, and what two have
    unknown_sets        sets that no metadata knows of, as lines of a list
    shard_join          a unit of work: one shard joined
    topic_sums          by topic; advice
    report              what people and programs are told
    unit_waves          units a wave at a time
    store_shards        the store, by listing it or by its inventory
    cluster_facts       topics and offsets, where the metadata is the cluster's own
    metadata_shards     metadata and cluster
    finished_deletions  proofs in the log of the metadata
    recheck             what could only be told last
    orphan_deletion     orphans deleted, each proof looked at once more
    audit               a whole audit

Invariants:

- The store is looked into first and the metadata is read after that; what looks wrong is looked at
  in the store once more, and then in the metadata as it is by then.
- Nothing is called an orphan without a proof and an age; what is only unknown is called that.
- Memory is bounded by a wave of units: rows wait on disk, and each unit holds one shard.

May be imported by `rlmm.cli.tier_maintenance`.

"""
