package io.rlmm.kafka.wire;

import java.util.Map;

/** The meaning of a failure to the caller: which rule of repeating and translating holds. */
public enum Kind {
    /** What the answer depends on is not known yet. */
    NOT_READY,
    /** No service was reached, or none answered in time; of a write: surely nothing was sent. */
    UNREACHABLE,
    /** The service has no room for it now. */
    BUSY,
    /** Another reason that passes by itself. */
    REFUSED_FOR_NOW,
    /** The user partition is not this broker's. */
    NOT_ASSIGNED,
    /** Nothing is known of the user partition. */
    UNKNOWN,
    /** A value that no service takes. */
    BAD_ARGUMENT,
    /** The state machine refuses the event. */
    REJECTED,
    /** Of a write: it may or may not be stored. */
    UNCERTAIN,
    /** Of a write: it is stored, or may be; what became of it was not heard. */
    UNHEARD,
    /** Another start of this broker has taken over. */
    SUPERSEDED,
    /** This side is closed. */
    CLOSED,
    /** Bytes that are no answer. */
    MALFORMED,
    /** Anything else; it does not pass by itself. */
    REFUSED;

    private static final Map<String, Kind> CODES = Map.ofEntries(
        Map.entry("not-ready", NOT_READY),
        Map.entry("not-assigned", NOT_ASSIGNED),
        Map.entry("over-budget", BUSY),
        Map.entry("too-busy", BUSY),
        Map.entry("log-unavailable", REFUSED_FOR_NOW),
        // Said of each write that found no leader, or too few replicas, in its time.
        Map.entry("append-refused", REFUSED_FOR_NOW),
        Map.entry("sidecar-unavailable", UNREACHABLE),
        // Said until it hangs up; the service of this cluster may be there the next time.
        Map.entry("wrong-cluster", UNREACHABLE),
        Map.entry("not-found", UNKNOWN),
        Map.entry("unknown-partition", UNKNOWN),
        Map.entry("invalid-argument", BAD_ARGUMENT),
        Map.entry("not-publishable", BAD_ARGUMENT),
        Map.entry("event-rejected", REJECTED),
        Map.entry("append-uncertain", UNCERTAIN),
        Map.entry("outcome-unknown", UNHEARD),
        Map.entry("assignment-lost", UNHEARD),
        Map.entry("stopped", UNHEARD),
        Map.entry("pump-failed", UNHEARD),
        // A fault of the service's own, before or behind the moment in which the event was stored.
        Map.entry("part-failed", UNHEARD),
        Map.entry("unresolved", UNHEARD),
        Map.entry("superseded", SUPERSEDED),
        Map.entry("protocol", MALFORMED));

    static Kind ofCode(String code) {
        return CODES.get(code);
    }
}
