"""
Commands that query the tiered state: each with its question, its answer and its text.

Nothing imports it.

- `check`: `rlmm check`.
- `diff`: `rlmm diff`.
- `doctor`: `rlmm doctor`.
- `event_text`: Events of the metadata topic in words.
- `events`: `rlmm events`.
- `explain`: `rlmm explain`.
- `explain_answer`: The question and the answer of `rlmm explain`.
- `explain_text`: The text of one screen that explains one offset.
- `finding_answer`: Findings as an answer.
- `history`: `rlmm history`.
- `lag`: `rlmm lag` and `rlmm offsets`.
- `preflight`: `rlmm preflight`.
- `rehearse_compaction`: `rlmm rehearse-compaction`.
- `segment_answer`: The answers of `rlmm segments describe` and `rlmm segments find`.
- `segments`: `rlmm segments`, and the answer of `rlmm segments list`.
- `status`: `rlmm status`.
- `stuck`: `rlmm stuck`.
- `support_bundle`: `rlmm support-bundle`.
- `usage`: `rlmm usage`.
- `verify`: `rlmm verify`.
"""
