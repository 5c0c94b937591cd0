"""
Commands that query the tiered state: a module for each command, and one for its answer.

Nothing imports it.

- `bundle_answer`: What goes into a support bundle, and how it is packed.
- `check`: `rlmm check`.
- `check_answer`: What `rlmm check` asks, and how it is answered.
- `diff`: `rlmm diff`.
- `diff_answer`: What `rlmm diff` asks, and how it is answered.
- `doctor`: `rlmm doctor`.
- `doctor_answer`: What `rlmm doctor` asks, and how it is answered.
- `event_text`: Events of the metadata topic in words.
- `events`: `rlmm events`.
- `events_answer`: What `rlmm events` asks, and how it is answered.
- `explain`: `rlmm explain`.
- `explain_answer`: What `rlmm explain` asks, and how it is answered.
- `explain_text`: One screen that explains one offset, for people.
- `finding_answer`: Findings as an answer.
- `history`: `rlmm history`.
- `history_answer`: What `rlmm history` asks, and how it is answered.
- `lag`: `rlmm lag` and `rlmm offsets`.
- `lag_answer`: What `rlmm lag` and `rlmm offsets` ask, and how they are answered.
- `preflight`: `rlmm preflight`.
- `preflight_answer`: What `rlmm preflight` asks, and how it is answered.
- `rehearsal_answer`: What `rlmm rehearse-compaction` asks, and how it is answered.
- `rehearse_compaction`: `rlmm rehearse-compaction`.
- `segment_answer`: What `rlmm segments describe` and `rlmm segments find` ask, and how they are
  answered.
- `segments`: `rlmm segments`.
- `segments_answer`: What `rlmm segments list` asks, and how it is answered.
- `status`: `rlmm status`.
- `status_answer`: What `rlmm status` asks, and how it is answered.
- `stuck`: `rlmm stuck`.
- `stuck_answer`: What `rlmm stuck` asks, and how it is answered.
- `support_bundle`: `rlmm support-bundle`.
- `usage`: `rlmm usage`.
- `usage_answer`: What `rlmm usage` asks, and how it is answered.
- `verify`: `rlmm verify`.
- `verify_answer`: What `rlmm verify` asks, and how it is answered.

Nothing imports it.
"""
