"""
What retention has given up goes: metadata first, then objects, then metadata again.

    with open_tier(request) as tier:
        report = expire(tier, wish)                     # a dry run: what would go, and why
        report = expire(tier, wish, is_applied=True)

What goes is what Kafka's leader would delete, by the one rule in `rlmm.retention.retention`; and
whatever was begun and not brought to its end: segments whose deletion was started, partitions whose
deletion was marked. A topic that live brokers expire themselves is refused.

By module, bottom up:

    options          what is asked for: limits, what else may go, how much at most
    topic_ownership  whose business a topic is, by what the cluster tells. Pure
    decision         what of one partition goes, and why. Pure
    object_removal   the objects of some segments taken away: what runs on executors
    actions          what carrying out reaches outside with
    execution        deletion started, objects away, deletion finished, in waves
    current_state    what cluster, metadata and jobs say now
    report           what became of everything, for people and as JSON
    job              the whole: looked at, claimed, looked at again, carried out

Invariants:

- Objects go only when the metadata was heard to say that their deletion is started, and was read
  again since; it is said to be finished only when they are gone.
- A topic is worked at only by who has claimed it, as copy jobs do: never by both at once. A copy
  that may be at work stays, and what lies behind it in its log as well.
- Whatever a run leaves when it dies is found and finished by the next one.
- Nothing else is deleted: no object by listing, no key but those of the segment.

May be imported by `rlmm.cli.tier_maintenance`.

"""
