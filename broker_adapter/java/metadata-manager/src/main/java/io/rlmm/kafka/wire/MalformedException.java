package io.rlmm.kafka.wire;

/** Bytes or values that the protocol does not know; the connection they came by is given up. */
public final class MalformedException extends Exception {
    private static final long serialVersionUID = 1L;

    public MalformedException(String message) {
        super(message);
    }
}
