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

    adopt(at, ...)          # every topic that is asked for
    resume(at, topic)       # go on: copy the rest, close
    abort(at, topic)        # copy nothing more, close
    windows(at)             # which are open

By module, bottom up:

    outcomes       why a topic is refused, and what became of it
    settings       the settings of a topic: what is refused, journalled, changed and restored
    safety         whether brokers may begin to copy beside what the tier has
    quiet_watch    whether metadata has been left alone
    end_plan       a plan that ends what is open
    journal        where a window stands, as a value
    journal_store  journals in the store, written once
    protocols      what a window works with
    resume_check   what is looked at when brokers copy again
    steps          the single steps of a window
    window         one topic's window: the steps in their order
    topic_hands the actions of a real job: plans made and carried out, settings, the journal
    report         what became of all topics
    adoption       the whole: one topic after the other

Invariants:

- A window is journalled before it is opened, and each change of settings before it is made.
- What is restored comes from the journal alone.
- Brokers are let copy only when no copy of a job is open, and none would tell them of records that
  nobody has.
- After that nothing is finished by anybody: what was open is ended, so that the state machine
  refuses the event of a straggler.
- Whoever does not hold the topic changes nothing.

May be imported by `rlmm.cli`.

- `topic_actions`: The actions of a real job for one topic.
"""
