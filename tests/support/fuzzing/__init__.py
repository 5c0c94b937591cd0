"""
The fuzzer: `python -m tests.support.fuzzing.fuzz --count 1000000 --seed 1`.

    fuzz          the command and its report
    cases         the kinds of cases, the rules that every answer keeps, and twins of shards
    both_engines  cases that the native core and the reference engine both get
    frames        damaged frames for a frame server
"""
