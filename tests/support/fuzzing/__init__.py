"""
The fuzzer: `python -m tests.support.fuzzing.fuzz --count 1000000 --seed 1`.

    fuzz    the command and its report
    cases   the kinds of cases, the rules that every answer keeps, and twins of shards
    frames  damaged frames for a frame server
"""
