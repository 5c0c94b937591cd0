package io.rlmm.kafka.events;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;

/**
 * Whether a segment's transaction index is empty: a flag that segments have since 4.0.
 *
 * <p>Looked up by name, once: linked, it would break on 3.9. There the broker does not know, so that it is said
 * to be not empty, as every event written by such a broker says, too.
 */
final class TxnFlag {
    private static final MethodHandle GETTER = getter();
    private static final MethodHandle CONSTRUCTOR = constructor();

    private TxnFlag() { }

    static boolean of(RemoteLogSegmentMetadata segment) {
        try {
            return GETTER != null && (boolean) GETTER.invokeExact(segment);
        } catch (Throwable error) {
            throw unexpected(error);
        }
    }

    static RemoteLogSegmentMetadata segment(
            RemoteLogSegmentId id, long start, long end, long maxTimestampMs, int brokerId, long eventTimestampMs,
            int size, Optional<CustomMetadata> custom, RemoteLogSegmentState state, Map<Integer, Long> epochs,
            boolean isTxnIndexEmpty) {
        if (CONSTRUCTOR == null) {
            return new RemoteLogSegmentMetadata(
                id, start, end, maxTimestampMs, brokerId, eventTimestampMs, size, custom, state, epochs);
        }
        try {
            return (RemoteLogSegmentMetadata) CONSTRUCTOR.invokeExact(
                id, start, end, maxTimestampMs, brokerId, eventTimestampMs, size, custom, state, epochs,
                isTxnIndexEmpty);
        } catch (Throwable error) {
            throw unexpected(error);
        }
    }

    private static MethodHandle getter() {
        try {
            return MethodHandles.publicLookup().findVirtual(
                RemoteLogSegmentMetadata.class, "isTxnIdxEmpty", MethodType.methodType(boolean.class));
        } catch (NoSuchMethodException | IllegalAccessException error) {
            return null;
        }
    }

    private static MethodHandle constructor() {
        MethodType type = MethodType.methodType(
            void.class, RemoteLogSegmentId.class, long.class, long.class, long.class, int.class, long.class,
            int.class, Optional.class, RemoteLogSegmentState.class, Map.class, boolean.class);
        try {
            return MethodHandles.publicLookup().findConstructor(RemoteLogSegmentMetadata.class, type);
        } catch (NoSuchMethodException | IllegalAccessException error) {
            return null;
        }
    }

    private static RuntimeException unexpected(Throwable error) {
        if (error instanceof RuntimeException known) {
            return known;
        }
        return new IllegalStateException("a method of the broker's own threw", error);
    }
}
