"""
Commands that query the tiered state: a module for each command, and one for its answer.

Nothing imports it.

- `bundle_answer`: The content of a support bundle, and its packing.
- `check`: `rlmm check`.
- `check_answer`: The question and the answer of `rlmm check`.
- `diff`: `rlmm diff`.
- `diff_answer`: The question and the answer of `rlmm diff`.
- `doctor`: `rlmm doctor`.
- `doctor_answer`: The question and the answer of `rlmm doctor`.
- `event_text`: Events of the metadata topic in words.
- `events`: `rlmm events`.
- `events_answer`: The question and the answer of `rlmm events`.
- `explain`: `rlmm explain`.
- `explain_answer`: The question and the answer of `rlmm explain`.
- `explain_text`: The text of one screen that explains one offset.
- `finding_answer`: Findings as an answer.
- `history`: `rlmm history`.
- `history_answer`: The question and the answer of `rlmm history`.
- `lag`: `rlmm lag` and `rlmm offsets`.
- `lag_answer`: The questions and the answers of `rlmm lag` and `rlmm offsets`.
- `preflight`: `rlmm preflight`.
- `preflight_answer`: The question and the answer of `rlmm preflight`.
- `rehearsal_answer`: The question and the answer of `rlmm rehearse-compaction`.
- `rehearse_compaction`: `rlmm rehearse-compaction`.
- `segment_answer`: The questions and the answers of `rlmm segments describe` and
  `rlmm segments find`.
- `segments`: `rlmm segments`.
- `segments_answer`: The question and the answer of `rlmm segments list`.
- `status`: `rlmm status`.
- `status_answer`: The question and the answer of `rlmm status`.
- `stuck`: `rlmm stuck`.
- `stuck_answer`: The question and the answer of `rlmm stuck`.
- `support_bundle`: `rlmm support-bundle`.
- `usage`: `rlmm usage`.
- `usage_answer`: The question and the answer of `rlmm usage`.
- `verify`: `rlmm verify`.
- `verify_answer`: The question and the answer of `rlmm verify`.

Nothing imports it.
"""
