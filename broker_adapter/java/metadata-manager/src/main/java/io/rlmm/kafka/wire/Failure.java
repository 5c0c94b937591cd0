package io.rlmm.kafka.wire;

/**
 * A request that has no result: refused by the service, or met with silence.
 *
 * <p>One class for all, since the reaction depends on the kind alone.
 */
public final class Failure extends Exception {
    private static final long serialVersionUID = 1L;

    private final Kind kind;
    private final transient Refusal refusal;

    private Failure(Kind kind, String message, Refusal refusal, Throwable cause) {
        super(message, cause);
        this.kind = kind;
        this.refusal = refusal;
    }

    /** What the service refused. */
    public static Failure refused(Refusal refusal) {
        return new Failure(refusal.kind(), refusal.code() + ": " + refusal.message(), refusal, null);
    }

    /** What this side found out. */
    public static Failure of(Kind kind, String message) {
        return new Failure(kind, message, null, null);
    }

    /** The same, with what led to it. */
    public static Failure of(Kind kind, String message, Throwable cause) {
        return new Failure(kind, message, null, cause);
    }

    public Kind kind() {
        return kind;
    }

    /** What the service said, or null where it said nothing. */
    public Refusal refusal() {
        return refusal;
    }

    /** Where the event is, as far as the service said. */
    public Place storedAt() {
        return refusal == null ? null : refusal.storedAt();
    }

    /** The same failure under another kind, which says what it means to the caller. */
    public Failure as(Kind meant) {
        return meant == kind ? this : new Failure(meant, getMessage(), refusal, this);
    }

    /** Whether a question may be answered a little later. */
    public boolean passes() {
        return switch (kind) {
            case NOT_READY, UNREACHABLE, BUSY, REFUSED_FOR_NOW -> true;
            // Of a question: the service was ending, and the next start of it will answer.
            case UNHEARD -> true;
            default -> false;
        };
    }

    /** Whether it is no answer: neither about what was asked, nor the end of everything. */
    public boolean isUnsettled() {
        return switch (kind) {
            case CLOSED, UNKNOWN, NOT_ASSIGNED, BAD_ARGUMENT -> false;
            default -> true;
        };
    }
}
