"""
A broker that runs on rlmm.

    operator_commands  `rlmm` as an operator runs it beside such a broker
    outages            outages while records are written, copied and read
    outage_plans       the order of outages, drawn from a seed
    outage_costs       the cost of an outage for the broker, and its limits
    traffic            a producer, and consumers that read from the start again and again
    segment_copies     the copies of segments that a metadata topic names
"""
