"""
What a copy job does, decided before it does anything: nothing here reads, writes or draws.

    plan = make_plan(rules, metadata, source, evidence, new_ids)
    format_plan(plan), summary(plan)        # to review
    parse_plan(content)                     # the plan, or `PlanUnreadable`
    why_stale(plan, metadata, source)       # nothing, or why it must not be carried out

A segment is known by what the source lists; what only reading tells is handed in once it was
inspected. A first plan, with nothing inspected, names those to inspect: all that it leaves out as
`not-inspected`, a budget's worth of which is enough.

By module, bottom up:

    reasons             closed lists: why something is done, left out, ended, left open, or stale
    inputs              what a plan is made from, as values
    rules               what a plan is asked for: filters, budgets, costs
    lineage             what the tier has along the history of leaders; why no segment is cut
    preconditions       why nothing of a partition is copied
    open_copies         what becomes of copies that were started
    partition_draft     one partition, before budgets
    plan                a plan, as values
    partition_assembly  one partition's plan
    planner             all partitions under the budgets
    totals              what it comes to
    document            a plan as JSON, and the plan of such a document
    staleness           why a plan must be refused
    summary             a plan in a few lines

Invariants:

- A segment of the source is copied or left out for a named reason; nothing is passed over.
- Copies of a partition rise, and none is planned above a segment that is left out.
- Nothing is planned beside which brokers would not find what they found before.
- No budget is exceeded, by costs that are upper bounds.
- What is not known, of the metadata, the source, the store or a writer, is a reason to wait.
- Only copies of jobs that have ended are ended or completed, and whole objects of which the source
  has nothing any more are never deleted for being in the way.

May be imported by every package above it in the layers of `pyproject.toml`.

- `candidates`: Which segments of a partition may be copied at all, from what is known before any
  of them is read.
- `coverage`: What the tier has of a partition, by leader epoch and offset, and what it lacks of a
  segment.
"""
