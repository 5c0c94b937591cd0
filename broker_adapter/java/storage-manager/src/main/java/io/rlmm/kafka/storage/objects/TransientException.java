package io.rlmm.kafka.storage.objects;

import java.io.IOException;

/** The store is away, busy or slow: the same may go well in a moment. */
public class TransientException extends IOException {
    private static final long serialVersionUID = 1L;

    /** Says what did not go. */
    public TransientException(String message, Throwable cause) {
        super(message, cause);
    }
}
