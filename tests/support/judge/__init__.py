"""
The judge of `rlmm serve`: `python -m tests.support.judge --operations 1000000 --kills 1000`.

Clients ask and write side by side while the process is killed and started again, and every answer
is held to one order of all operations on its user partition. After some kills the tail of the log
is cut: then a new order begins with what the log holds. A second process observes the log.

    checker     PURE. The search for a legal order of a history
    partition   PURE. The answers of one user partition, one operation at a time
    lives       the user partitions that the clients work on, each with its history
    clients     the clients, and what each outcome of a call means
    cuts        cuts of the log, and a log of another partition count
    observer    the second process, its pauses and kills
    run         the service, its kills, and the figures of a run
    forked      a start of the service that takes a tenth of the time
    broken      the faults that are planted in it
"""
