"""
Plans of copy jobs: a planner decides all of a job before it begins. Nothing here does I/O.

A first plan, made before any segment was inspected, leaves out as `not-inspected` the segments to
inspect, a budget's worth of which is enough.

    reasons             closed lists: why a segment is copied, left out, ended, left open, or stale
    inputs              the values that a plan is made from
    rules               mode, filters, budgets and costs of a plan
    candidates          segments that may be copied, and partitions of which nothing is
    lineage             the tier along the history of leaders, by offset; why no segment is cut
    open_copies         decisions about copies that were started
    partition_draft     one partition, before budgets
    plan                a plan and its sums, as values
    partition_assembly  one partition, under the budgets
    planner             all partitions under the budgets
    document            a plan as JSON, and back
    staleness           reasons to refuse a plan
    summary             a plan in a few lines

Invariants:

- A segment of the source is copied or left out for a named reason; nothing is passed over.
- Copies of a partition rise, and none is planned above a segment that is left out.
- Nothing is planned beside which brokers would not find what they found before.
- No budget is exceeded, by costs that are upper bounds.
- An unknown fact of the metadata, the source, the store or a writer is a reason to wait.
- Only copies of jobs that have ended are ended or completed; whole objects of which the source
  has nothing any more are never deleted for being in the way.

May be imported by every package above it in the layers of `pyproject.toml`.
"""
