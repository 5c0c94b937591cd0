"""
The fuzzer: `python -m tests.support.fuzzing.fuzz --count 1000000 --seed 1`.

    fuzz    the command and its report
    cases   the kinds of cases, and the rules that every answer keeps
    frames  damaged frames for a frame server
    shards  a shard beside its twin that never takes the fast path
"""
