package io.rlmm.kafka.metadata;

import io.rlmm.kafka.wire.Failure;
import io.rlmm.kafka.wire.Refusal;

/** The verdict on an event that the state machine refuses: nothing changed by it. */
public final class EventRejectedException extends Exception {
    private static final long serialVersionUID = 1L;
    private final String reason;
    private final String current;
    private final String requested;

    EventRejectedException(Failure failure) {
        super(failure.getMessage(), failure);
        Refusal refusal = failure.refusal();
        reason = refusal == null ? "state-moved-on" : refusal.field("reason");
        current = refusal == null ? null : refusal.field("current");
        requested = refusal == null ? null : refusal.field("requested");
    }

    /** Stable name of the rule that refuses it. */
    public String reason() {
        return reason;
    }

    /** Kafka's name of the state that there is, or null. */
    public String current() {
        return current;
    }

    /** Kafka's name of the state that was asked for, or null. */
    public String requested() {
        return requested;
    }
}
