"""
Looking into the tiered state: what is asked of it by people, whoever holds it.

Questions and answers only. Where the state comes from is `rlmm.state_sources`; how answers are
printed is `rlmm.cli`.

Invariants:

- An answer is made of a `Moment`, of events, and of facts about the cluster; nothing here knows
  whether these came from a service, from Kafka or from copied folders, so all answer alike.
- Verdicts are those of the engine (`rlmm.metadata`); nothing here judges an event a second time.
- No time is looked up: who asks says what the time is.

May be imported by `rlmm.cli`, `rlmm.state_sources`, `rlmm.views`, `spark_tiering.maintenance`,
`spark_tiering.read_plan`.

- `check_thresholds`: Thresholds, judged once.
- `cluster_facts`: What a cluster says of its topics, brokers and offsets, as far as anybody could
  ask it.
- `compaction_rehearsal`: What would be left of the metadata topic at each feature level of
  KIP-1266, before anyone turns it on.
- `doctor_findings`: What `rlmm doctor` can find.
- `epoch_order`: Whether the leader epochs that a segment lists fit its offsets.
- `event_record`: One record of the metadata topic with its place, its time and what became of it.
- `event_stream`: Events of several metadata partitions as one stream.
- `explain`: Why an offset of a user partition is found in the tier, or is not, and what becomes
  of it.
- `explain_findings`: Why an offset is found, is not found, or is not read.
- `finding_kinds`: Every kind of finding there is, by the command that looks for it.
- `log_cleaner`: What Kafka's log cleaner keeps of a metadata partition, and by which keys.
- `log_scan`: Looking through the log for what is sought, without making a state of it.
- `lookup_trace`: How a look-up gets to its answer, step by step, and what a stock broker would
  answer.
- `moment_diff`: One metadata partition at two moments.
- `offset_history`: What the log tells about one offset of a user partition.
- `record_set_bounds`: What of a record set can be trusted, as the engine judges it, and where it
  is cut for a question that ends inside it.
- `replay`: A log read from its start up to a bound.
- `segment_search`: Which segments hold an offset, or a time, and how look-ups find them.
- `selectors`: What people mean by a time, a moment, a partition or a segment that they typed.
- `shadowing`: What a finished segment loses when another one takes its slot.
- `source_status`: How a source of the tiered state stands.
- `state_changes`: What differs between two states of one user partition.
- `verify`: Whether what the tier is said to hold makes sense.

- `doctor`: Settings of the metadata topic, of brokers and of tiered topics that contradict one
  another or will hurt, and rights that are missing.
- `event_filter`: Which events of the metadata topic are meant.
- `explain_facts`: What is known about a user partition beside its state, and what that alone
  explains.
- `history`: What happened to one segment, or to one user partition, event by event.
- `lag`: How far copies are behind, from first principles, and when disks are full.
- `late_finishes`: Copies that a lost leader finished late, over the copy of its successor.
- `moment`: The state at one moment, whoever holds it.
- `preflight`: What depends on the tier before a partition is moved, or a topic deleted.
- `segment_filter`: Which segments are meant, and in which order they are shown.
- `stuck`: Copies and deletions that were begun and never finished, with what is behind it.
- `usage`: Where the bytes of the tier are, what is waste, what will go soon and what it costs.
"""
