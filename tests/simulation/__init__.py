"""
The simulator: several engines, their log, network, clocks and disks, driven by one seed.

    python -m tests.simulation --seeds 1000            # many seeds, on two processes
    python -m tests.simulation --seed 17 --verbose     # one seed and its story

Nothing in it is left to chance or to the machine: time leaps, threads run inline, and every random
number comes from the seed. So a seed replays exactly, and what it finds can be looked at.

Modules, bottom up:

    chance, story      random streams of a seed, and what happened, in lines and as a digest
    loop               an event loop that leaps in time and has no threads
    disk               a disk in memory: a crash loses what was not forced to the medium
    topic              the topic, and everything that was ever stored in it
    reference          what a replay of that gives, offset by offset
    wire               the network between one engine and the topic
    tiers              what writers want: the lives of segments
    machine            one engine with its disk, clock and wire: start, stop, crash
    invariants         what must always hold
    clients            who asks and who writes, and what they check of the answers
    failures           what goes wrong around engines, and how it heals
    steps              what may happen next
    world              a run from its seed to its outcome
    broken             engines with something wrong in them, which must be caught
"""
