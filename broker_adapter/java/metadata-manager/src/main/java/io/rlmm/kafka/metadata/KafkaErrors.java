package io.rlmm.kafka.metadata;

import io.rlmm.kafka.wire.Failure;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.apache.kafka.common.errors.ReplicaNotAvailableException;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;

/**
 * For each failure, the exception that a broker expects.
 *
 * <p>What a broker does with one depends on its class alone. Only "replica not available" tells a
 * consumer to look around and ask again; everything else reaches it as an unknown server error. A
 * background task is silent about it, too, and comes back.
 */
final class KafkaErrors {
    /** Since 4.2; looked up by name, since on an older broker nothing of that name can be linked. */
    private static final String RETRIABLE =
        "org.apache.kafka.server.log.remote.storage.RetriableRemoteStorageException";
    private static final MethodHandle NEW_RETRIABLE = newRetriable();

    private KafkaErrors() { }

    /** What a question is answered with; thrown by the caller, and checked only in part. */
    static Exception ofQuestion(Failure failure) {
        String said = failure.getMessage();
        return switch (failure.kind()) {
            case NOT_READY, UNREACHABLE, BUSY, REFUSED_FOR_NOW, UNCERTAIN, UNHEARD, SUPERSEDED, MALFORMED ->
                new ReplicaNotAvailableException(said, failure);
            case NOT_ASSIGNED, UNKNOWN -> new RemoteResourceNotFoundException(said, failure);
            case BAD_ARGUMENT -> new IllegalArgumentException(said, failure);
            case CLOSED -> new IllegalStateException(said, failure);
            case REJECTED, REFUSED -> new RemoteStorageException(said, failure);
        };
    }

    /** What the future of a write ends with. */
    static Exception ofWrite(Failure failure) {
        String said = failure.getMessage();
        return switch (failure.kind()) {
            case NOT_READY, UNREACHABLE, BUSY, REFUSED_FOR_NOW -> retriable(said, failure);
            case REJECTED -> new RemoteStorageException(said, new EventRejectedException(failure));
            case BAD_ARGUMENT -> new IllegalArgumentException(said, failure);
            case CLOSED -> new IllegalStateException(said, failure);
            default -> new RemoteStorageException(said, failure);
        };
    }

    private static Exception retriable(String said, Failure failure) {
        if (NEW_RETRIABLE != null) {
            try {
                return (Exception) NEW_RETRIABLE.invoke(said, (Throwable) failure);
            } catch (Throwable error) {
                failure.addSuppressed(error);
            }
        }
        return new RemoteStorageException(said, failure);
    }

    private static MethodHandle newRetriable() {
        try {
            Class<?> known = Class.forName(RETRIABLE, true, KafkaErrors.class.getClassLoader());
            return MethodHandles.publicLookup().findConstructor(
                known, MethodType.methodType(void.class, String.class, Throwable.class));
        } catch (ReflectiveOperationException error) {
            return null;
        }
    }
}
