"""
Audit: the objects of a store are compared with the metadata and with the cluster.

Invariants:

- The audit lists the store first and reads the metadata after that; it checks each fault once more
  in the store, and then in the newest metadata.
- The audit calls nothing an orphan without a proof and an age; other sets are unproven.
- Memory is bounded by a wave of units: rows are on disk, and each unit holds one shard.

May be imported by `rlmm.cli.tier_maintenance`.

- `audit`: The whole audit.
- `extents`: Offsets that no segment or two segments hold.
- `metadata_shards`: The cluster's facts, and the segments of the metadata, by shard.
- `object_set_verdict`: The verdicts on the objects of one segment, on proofs, on the whole.
- `orphan_deletion`: The deletion of orphans, each after another check of its proof.
- `recheck`: Missing objects and unknown sets by the newest metadata, finished deletions.
- `report`: The report for people and programs.
- `segment_facts`: The fields of segments and partitions, in few bytes.
- `shard_join`: A unit of work: the join of one shard.
- `store_shards`: The objects of the store, by a listing or an inventory; waves of units.
- `topic_sums`: Sums by topic, and advice.
- `unknown_sets`: Sets that no metadata refers to, as lines of a list.
"""
