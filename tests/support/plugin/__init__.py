"""
A broker that runs on rlmm.

    operator_commands  `rlmm` as an operator runs it beside such a broker
    outages            outages while records are written, copied and read
    outage_plans       which outage happens when, drawn from a seed
    outage_costs       what an outage costs the broker, and how much is too much
    traffic            a producer, and consumers that read from the start again and again
    segment_copies     the copies of segments that a metadata topic names
"""
