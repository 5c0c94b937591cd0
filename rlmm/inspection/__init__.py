"""
Looking into the tiered state: what is asked of it by people, whoever holds it.

Questions and answers only. Where the state comes from is `rlmm.sources`; how answers are printed is
`rlmm.cli`. By module, bottom up:

    values        `findings`, `standing`, `cluster`, `durations`, `selection`, `segment_filter`
    the state     `moment`, `lineage`, `finding_segments`, `looking_up`, `retention`
    the log       `happened`, `cutting`, `replaying`, `scanning`, `streaming`, `event_filter`
    history       `history`, `story`, `changes`, `comparing`, `late_finishes`
    checks        `stuck`, `verifying`, `watchdog`, `doctor`, `preflight`, all told in `kinds`
    sums          `usage`, `lag`, `cleaning`, `compaction`
    one offset    `explain_facts`, `explain_kinds`, `explaining`
    for others    `redaction`

Invariants:

- An answer is made of a `Moment`, of events, and of facts about the cluster; nothing here knows
  whether these came from a service, from Kafka or from copied folders, so all answer alike.
- Verdicts are those of the engine (`rlmm.metadata`); nothing here judges an event a second time.
- No time is looked up: who asks says what the time is.
"""
