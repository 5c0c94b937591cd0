package io.rlmm.kafka.storage.layout;

/** A segment is encrypted, and what was configured does not open it. */
public class SealedException extends LayoutException {
    private static final long serialVersionUID = 1L;

    /** Names the key that is needed. */
    public SealedException(String message) {
        super(message);
    }
}
