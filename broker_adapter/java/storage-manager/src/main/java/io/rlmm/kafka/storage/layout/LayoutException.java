package io.rlmm.kafka.storage.layout;

/** An object is not what the layout says; the message names the field or the place. */
public class LayoutException extends Exception {
    private static final long serialVersionUID = 1L;

    /** A finding in words. */
    public LayoutException(String message) {
        super(message);
    }
}
