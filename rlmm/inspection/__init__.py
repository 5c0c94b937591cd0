"""
Queries of the tiered state for operators, the same for every source.

Questions and answers only. Where the state comes from is `rlmm.state_sources`; how answers are
printed is `rlmm.cli`.

Invariants:

- An answer is made of a `Moment`, of events, and of facts about the cluster; nothing here knows
  whether these came from a service, from Kafka or from copied folders, so all answer alike.
- Verdicts are those of the engine (`rlmm.metadata`); nothing here judges an event a second time.
- No time is looked up: the caller passes it in.

May be imported by `rlmm.cli`, `rlmm.state_sources`, `rlmm.views`, `spark_tiering.maintenance`,
`spark_tiering.read_plan`.

- `check_thresholds`: Thresholds of `rlmm check`, judged once.
- `cluster_facts`: Topics, brokers, settings and offsets, as far as a cluster tells them.
- `compaction_rehearsal`: The records that the log cleaner leaves at each level of KIP-1266.
- `doctor`: Settings of brokers and topics that contradict one another, and missing rights.
- `doctor_findings`: The findings of `rlmm doctor`.
- `epoch_order`: The order of leader epochs that a segment lists.
- `event_filter`: The events of the metadata topic that a query selects.
- `event_record`: One record of the metadata topic with its place, its time and its verdict.
- `event_stream`: Events of several metadata partitions as one stream.
- `explain`: The explanation why look-ups find an offset of a user partition, or do not.
- `explain_facts`: Facts about a user partition beside its state.
- `explain_findings`: The findings of `rlmm explain`.
- `finding_kinds`: Every kind of finding, by the command that looks for it.
- `history`: The events of one segment, or of one user partition.
- `lag`: The lag of copies behind the log, and when disks are full.
- `late_finishes`: Copies that a former leader finished late, over the copy of its successor.
- `log_scan`: A search of the log that makes no state.
- `lookup_trace`: The steps of a look-up, the answer of a stock broker, and the segments it loses.
- `moment`: The state at one moment.
- `moment_diff`: The difference of one metadata partition between two moments.
- `offset_history`: The copies that ever held one offset.
- `preflight`: The preflight of a partition's move or a topic's deletion.
- `replay`: A log that is read from its start up to a bound.
- `segment_search`: Searches for segments: by what they are, by an offset or a time that they hold.
- `selectors`: Times, moments, partitions and segments as they are typed.
- `source_status`: The status of a source of the tiered state.
- `stuck`: Copies and deletions that were started and never finished.
- `usage`: The bytes of the tier: in use, waste, due for deletion, and their cost.
- `verify`: Contradictions in the metadata, and with the log.
"""
