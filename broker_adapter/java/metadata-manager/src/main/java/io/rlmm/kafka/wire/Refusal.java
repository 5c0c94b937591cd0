package io.rlmm.kafka.wire;

import java.util.List;
import java.util.Map;

/**
 * Why a service did not do what it was asked.
 *
 * @param code stable name; one that a newer service has is read as its nearest one that is known
 * @param retriable whether the same request may succeed later without a change by an operator
 */
public record Refusal(String code, String message, boolean retriable, Map<?, ?> fields) {

    /** The refusal in the second place of an answer. */
    public static Refusal read(Object value) throws MalformedException {
        List<?> said = Forms.array(value, 4, "an error");
        return new Refusal(
            Forms.text(said.get(0), "the code of an error"),
            Forms.text(said.get(1), "the message of an error"),
            Forms.flag(said.get(2), "whether an error is retriable"),
            Forms.map(said.get(3), "the fields of an error"));
    }

    /** The kind of this refusal for the caller. */
    public Kind kind() {
        Kind known = Kind.ofCode(code);
        if (known == null && fields.get("base") instanceof String base) {
            known = Kind.ofCode(base);
        }
        if (known != null) {
            return known;
        }
        return retriable ? Kind.REFUSED_FOR_NOW : Kind.REFUSED;
    }

    /** Where the event is, if it was stored; null: not stored, or not known. */
    public Place storedAt() {
        try {
            return Place.readOrNull(fields.get("stored_at"));
        } catch (MalformedException error) {
            return null;
        }
    }

    /** When it is a good moment to ask again; 0 where the service does not say. */
    public long retryAfterMs() {
        return fields.get("retry_after_ms") instanceof Long said ? Math.max(0, said) : 0;
    }

    /** A text among the fields, or null. */
    public String field(String name) {
        return fields.get(name) instanceof String text ? text : null;
    }
}
