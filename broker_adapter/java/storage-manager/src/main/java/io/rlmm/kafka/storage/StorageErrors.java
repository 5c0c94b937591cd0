package io.rlmm.kafka.storage;

import io.rlmm.kafka.storage.layout.SealedException;
import io.rlmm.kafka.storage.objects.ObjectAbsentException;
import io.rlmm.kafka.storage.objects.TransientException;
import java.io.InterruptedIOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;

/** The exception that a broker knows, for each failure of ours. */
final class StorageErrors {
    private static final String RETRIABLE =
        "org.apache.kafka.server.log.remote.storage.RetriableRemoteStorageException";
    /** Looked up by name, once: linked, it would break on 3.9, where everything is tried again. */
    private static final MethodHandle CONSTRUCTOR = constructor();

    private StorageErrors() { }

    static RemoteStorageException of(Throwable error) {
        if (error instanceof RemoteStorageException told) {
            return told;
        }
        if (error instanceof ObjectAbsentException) {
            return new RemoteResourceNotFoundException(error.getMessage(), error);
        }
        if (error instanceof SealedException) {
            return new SegmentEncryptedException(
                error.getMessage() + "; keys are named by rsm.config." + Settings.KEY_RING, error);
        }
        if (error instanceof TransientException || error instanceof InterruptedIOException) {
            return retriable(error);
        }
        return new RemoteStorageException(String.valueOf(error.getMessage()), error);
    }

    private static RemoteStorageException retriable(Throwable error) {
        if (CONSTRUCTOR != null) {
            try {
                return (RemoteStorageException) CONSTRUCTOR.invoke(error.getMessage(), error);
            } catch (Throwable unexpected) {
                error.addSuppressed(unexpected);
            }
        }
        return new RemoteStorageException(error.getMessage(), error);
    }

    private static MethodHandle constructor() {
        try {
            Class<?> found = Class.forName(RETRIABLE, true, RemoteStorageException.class.getClassLoader());
            return MethodHandles.publicLookup().findConstructor(
                found, MethodType.methodType(void.class, String.class, Throwable.class));
        } catch (ReflectiveOperationException error) {
            return null;
        }
    }
}
