"""
Frozen plans: the segments that hold a range of offsets, decided once, for readers of any time.

    question           topics, bounds by offset or time, prefix; facts of the cluster
    plan               a plan, as values
    inputs             the state of one partition, from a shard or from recovered manifests
    answering_segments  which segment answers for which offsets, by the engine's own look-ups
    gaps               offsets that are not there, and segments that are left out, by reason
    tokens             a plan's token, and back
    question_document  question and facts in a document, and in a token
    document           a plan as JSON, and back
    partition_plan     the plan of one partition, and its bounds as offsets
    planner            the plan of all partitions
    parquet            a plan as a table, and back
    plan_check         segments of a plan that are gone by now
    reports            a plan in a few lines, and the findings of `rlmm tier export`
    moments            shell: the metadata at one position, now or in the past
    manifest_units     shell: the manifests of a store, read by units of work
    tier_plans         shell: plans of an open tier
    plan_files         shell: files of plans

The history of leader epochs is that of a broker's checkpoint (`QuestionFacts`), else that of the
tier's own segments: an epoch that begins at or before an older one has replaced it. Offset by
offset the engine's `Shard.segment_for` names the segment.

Invariants:

- Ranges of a partition rise and never overlap; with its gaps they are the question, exactly.
- Only finished segments are read. Any other holder of a wanted offset is named in `left_out`.
- The same state, question and facts give the same plan, token and document, byte for byte.
- A token names all that its plan has read and lacked, so a later plan passes over no segment.

May be imported by `rlmm.cli`, `spark_tiering.data_source`.
"""
