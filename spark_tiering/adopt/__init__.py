"""
The tier of a live cluster: copies that brokers take for their own, made while their own copying
stands still. A topic at a time, by nine steps:

    1   what was set on the topic is journalled; what speaks against it is found before anything
    2   one change: copying off, retention off
    3   the metadata is quiet
    4   a plan from exactly where the tier ends
    5   copies started, made, verified, finished without a gap; 4 again until little is left
    6   what failed is ended, from the top down
    7   one change: copying on again; that the brokers go on behind the last copy is seen
    8   retention as it was
    9   checked: nothing copied twice, nothing lost

Between 2 and 8 a window is open: nothing expires, disks grow. A job that dies in it leaves a
journal, by which another one goes on with the window or closes it.

    outcomes       reasons of refusals, and outcomes of topics
    settings       settings of a topic: refused, journalled, changed and restored
    safety         whether brokers may copy beside the tier, quiet metadata, checks afterwards
    end_plan       a plan that ends open copies
    journal        where a window stands, as a value
    journal_store  journals in the store, written once
    protocols      what a window needs outside the driver
    steps          the single steps of a window
    window         one topic's window: the steps in their order
    topic_actions  settings, journals and plans of a real job for one topic
    report         the report about all topics
    adoption       the whole: one topic after the other

Invariants:
- A window is journalled before it is opened, and each change of settings before it is made.
- What is restored comes from the journal alone.
- Brokers copy again only when no copy of a job is open, and no finished copy covers records that
  are nowhere.
- After that no job finishes a copy: open ones are ended, so that the state machine refuses the
  event of a straggler.
- A job that does not hold the topic changes nothing.

May be imported by `rlmm.cli`.
"""
