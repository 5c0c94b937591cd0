"""
Frozen plans: the segments that hold a range of offsets, decided once. Readers of one plan read the
same records, at any time and in any place.

    question = Question(topics=("orders",), bounds=RecordBounds(from_offset=1000), prefix="tiered/")
    plan = plan_of_moment(steady(tier.moment(), tier.log), question)   # of the metadata
    plan = plan_of_manifests(told, question)                           # of manifests alone
    plan.segments; plan.partitions[0].gaps; plan.token      # disjoint ranges, in order
    format_plan(plan) -> bytes; parse_plan(content) -> FrozenPlan | ReadPlanUnreadable
    format_parquet(plan) -> bytes; parse_parquet(content)    # `require_plan(file)` reads either
    parse_token(plan.token); plan_of_moment(..., since=token)    # what is new since then

By module, bottom up:

    question           topics, bounds by offset or time, prefix; facts of the cluster
    plan               a plan, as values
    inputs             the state of one partition, from a shard or from recovered manifests
    segment_lookup     which segment answers for which offsets, by the engine's own look-ups
    offset_bounds      the bounds of one partition, as offsets
    gaps               offsets that are not there, and segments that are left out, by reason
    tokens             a plan's token, and back
    question_document  question and facts in a document, and in a token
    document           a plan as JSON, and back
    partition_plan     the plan of one partition
    planner            the plan of all partitions
    parquet            a plan as a table, and back
    plan_check         segments of a plan that are gone by now
    reports            a plan in a few lines, and the findings of `rlmm tier export`
    moments            shell: the metadata at one position, now or in the past
    manifest_units     shell: the manifests of a store, read by units of work
    tier_plans         shell: plans of an open tier
    plan_files         shell: files of plans

Which lineage: where the history of leader epochs is known (`QuestionFacts`, from a broker's
checkpoint) that one. Else as the tier's own segments tell it, those that are finished or being
copied: an epoch that begins at or before an older one has replaced it, so of two records under one
offset the one of the greatest epoch is read. What follows is the engine's: offset by offset the
segment that `Shard.segment_for` names for the epoch of that offset, and nothing where it names
none.

Invariants:

- Ranges of a partition rise and never overlap, and with its gaps they are what was asked, exactly.
- Only finished segments are read. Whatever else holds an asked offset is named in `left_out`.
- The same state, question and facts give the same plan, token and document, byte for byte: no
  time, no place and no order of arrival is in it.
- A token names all that its plan has read and all that it lacked, so a later plan of what is new
  passes over no segment.

May be imported by `rlmm.cli`, `spark_tiering.data_source`.
"""
