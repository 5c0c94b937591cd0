package io.rlmm.kafka.storage.objects;

import java.io.IOException;

/** There is no such object. */
public class ObjectAbsentException extends IOException {
    private static final long serialVersionUID = 1L;

    /** Names it. */
    public ObjectAbsentException(String key, Throwable cause) {
        super("no object " + key, cause);
    }
}
