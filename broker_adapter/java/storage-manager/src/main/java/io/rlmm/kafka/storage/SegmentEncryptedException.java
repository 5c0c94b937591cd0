package io.rlmm.kafka.storage;

import org.apache.kafka.server.log.remote.storage.RemoteStorageException;

/** A segment is encrypted, and no key that was configured opens it. */
public class SegmentEncryptedException extends RemoteStorageException {
    private static final long serialVersionUID = 1L;

    /** Names the key that is needed. */
    public SegmentEncryptedException(String message, Throwable cause) {
        super(message, cause);
    }
}
