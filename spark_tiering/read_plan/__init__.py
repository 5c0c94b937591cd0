"""
Frozen plans: exactly which bytes of which segments hold a range of offsets, decided once, so that
whoever reads them later, anywhere, any number of times, reads the same.

    question = Question(topics=("orders",), bounds=Bounds(from_offset=1000), prefix="tiered/")
    plan = plan_of_moment(steady(tier.moment(), tier.log), question)   # of the metadata
    plan = plan_of_manifests(told, question)                           # of manifests alone
    plan.segments; plan.partitions[0].gaps; plan.token      # disjoint ranges, in order
    format_plan(plan) -> bytes; parse_plan(content) -> FrozenPlan | PlanUnreadable
    format_parquet(plan) -> bytes; parse_parquet(content)    # `require_plan(file)` reads either
    parse_token(plan.token); plan_of_moment(..., since=token)    # what is new since then

By module, bottom up:

    question        what is asked: topics, bounds by offset or time, prefix; facts of the cluster
    plan            a plan, as values
    json_values     JSON that somebody else may have written, and its values one by one
    inputs          the state of one partition, whoever holds it; of recovered manifests as well
    segment_lookup  which segment answers for which offsets, by the engine's own look-ups
    offset_bounds   what was asked of one partition, as offsets
    gaps            what is asked for and not there, and what is left out, by reason
    tokens          a plan's token, and back
    document        a plan as JSON, made of `fields`; `document_reading` reads it
                    and `asked_reading`
    parquet         a plan as a table
    plan_check      which segments of a plan are gone by now
    moments         shell: the metadata as it is, held to its positions, and as it was
    manifest_units  shell: the manifests of a store, read by units of work
    tier_plans      shell: plans of an open tier
    plan_files      shell: files of plans

Which lineage: where the history of leader epochs is known (`Facts.histories`, from a broker's
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
- A token names all that its plan has read and all that it lacked, so nothing that is tiered later
  is passed over by whoever asks what is new.

May be imported by `rlmm.cli`, `spark_tiering.data_source`.

- `document_reading`: A plan out of its document.
- `partition_plan`: One partition of a plan.
- `planner`: From the state of partitions to the plan that is asked for.
- `question_reading`: Question and facts, out of a plan's document or out of its token.
- `reports`: What `rlmm tier export` found.
- `summary`: A plan in a few lines, for people.
"""
