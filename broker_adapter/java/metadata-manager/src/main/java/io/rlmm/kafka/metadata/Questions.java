package io.rlmm.kafka.metadata;

import io.rlmm.kafka.events.SegmentForm;
import io.rlmm.kafka.link.Link;
import io.rlmm.kafka.metadata.Asking.Question;
import io.rlmm.kafka.metadata.Asking.Reader;
import io.rlmm.kafka.wire.Failure;
import io.rlmm.kafka.wire.Forms;
import io.rlmm.kafka.wire.Kind;
import io.rlmm.kafka.wire.MalformedException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteState;

/**
 * The questions of a broker, each waited for by the thread that asks.
 *
 * <p>Questions about other brokers' partitions are answered here: the broker itself reports its own, so
 * no service knows better, and none has to be there.
 */
final class Questions {
    private static final int PAGE_UNTOLD = 1_000;
    /** Beyond the deadline that every future has itself; never reached. */
    private static final long GUARD_MS = 1_000;
    private static final long READY_MS = 100;

    private final Link link;
    private final Asking asking;
    private final Settings settings;
    private final Patience patience;

    Questions(Link link, Asking asking, Settings settings) {
        this.link = link;
        this.asking = asking;
        this.settings = settings;
        patience = new Patience(settings.listingMs(), settings.lookupMs());
    }

    /** A page of a listing; after is null behind the last one. */
    record Page(List<RemoteLogSegmentMetadata> segments, byte[] after) { }

    /** The one segment that a question of a consumer's fetch is about. */
    Optional<RemoteLogSegmentMetadata> segment(String method, TopicIdPartition partition, int epoch, long offset)
            throws Failure {
        if (epoch < 0 || offset < 0) {
            requireOwn(partition);
            return Optional.empty();
        }
        List<?> args = List.of(SegmentForm.partition(partition), epoch, offset);
        Reader<Optional<RemoteLogSegmentMetadata>> reader = value -> SegmentForm.readOptional(partition, value);
        return known(partition, Optional.empty(), settings.lookupMs(), leftMs -> asked(
            new Question<>(partition, method, left -> args, reader, leftMs, leftMs, false)));
    }

    Optional<Long> highestOffset(TopicIdPartition partition, int epoch) throws Failure {
        if (epoch < 0) {
            requireOwn(partition);
            return Optional.empty();
        }
        Reader<Optional<Long>> reader =
            value -> value == null ? Optional.empty() : Optional.of(Forms.uint63(value, "an offset"));
        List<?> args = List.of(SegmentForm.partition(partition), epoch);
        return known(partition, Optional.empty(), settings.taskMs(), leftMs -> asked(
            task(partition, "highest_offset", args, reader)));
    }

    long size(TopicIdPartition partition, int epoch) throws Failure {
        if (epoch < 0) {
            requireOwn(partition);
            return 0;
        }
        List<?> args = List.of(SegmentForm.partition(partition), epoch);
        return known(partition, 0L, settings.taskMs(), leftMs -> asked(
            task(partition, "remote_log_size", args, value -> Forms.uint63(value, "a size"))));
    }

    /** A page of all segments, or, where an epoch is given, of those that list it. */
    Page page(TopicIdPartition partition, Integer epoch, byte[] after) throws Failure {
        if (epoch != null && epoch < 0) {
            requireOwn(partition);
            return new Page(List.of(), null);
        }
        int most = link.limits().pageMax();
        int limit = most == 0 ? PAGE_UNTOLD : Math.min(PAGE_UNTOLD, most);
        List<Object> at = SegmentForm.partition(partition);
        Reader<Page> reader = value -> readPage(partition, value);
        Page none = new Page(List.of(), null);
        if (epoch != null) {
            List<?> args = Arrays.asList(at, epoch, after, limit);
            return known(partition, none, settings.taskMs(), leftMs -> asked(
                task(partition, "list_segments_by_epoch", args, reader)));
        }
        List<?> args = Arrays.asList(at, after, limit);
        return known(partition, none, settings.listingMs(), leftMs ->
            patiently(partition, "list_segments", args, reader));
    }

    /** Whether questions are answered now; from the state known here, and else soon. */
    boolean isReady(TopicIdPartition partition) {
        if (!link.isOwn(partition) || !link.isAnswering()) {
            return false;
        }
        List<?> args = List.of(SegmentForm.partition(partition));
        long timeoutMs = Math.min(READY_MS, settings.lookupMs());
        try {
            Object said = waited(link.exchange("is_ready", () -> args, timeoutMs), timeoutMs);
            return Forms.flag(said, "whether it is ready");
        } catch (Failure | MalformedException error) {
            return false;
        }
    }

    // ------------------------------------------------------------------------------- carried out

    private interface Asked<T> {
        T within(long leftMs) throws Failure;
    }

    private <T> Question<T> task(TopicIdPartition partition, String method, List<?> args, Reader<T> reader) {
        return new Question<>(partition, method, left -> args, reader, settings.taskMs(), settings.lookupMs(), false);
    }

    /** The answer to a question that is asked once only, see Patience. */
    private <T> T patiently(TopicIdPartition partition, String method, List<?> args, Reader<T> reader)
            throws Failure {
        long thread = Thread.currentThread().getId();
        long sinceNs = System.nanoTime();
        long leftMs = TimeUnit.NANOSECONDS.toMillis(patience.forNs(thread, sinceNs));
        try {
            return asked(new Question<>(partition, method, left -> args, reader, leftMs, leftMs, true));
        } catch (Failure failure) {
            if (failure.isUnsettled()) {
                patience.waited(thread, sinceNs, System.nanoTime());
            }
            throw failure;
        }
    }

    /**
     * The answer; where nothing is known of a partition of ours it is what an empty history says,
     * unless its deletion is finished. What has to be asked for that is part of the same time.
     */
    private <T> T known(TopicIdPartition partition, T empty, long totalMs, Asked<T> question) throws Failure {
        requireOwn(partition);
        long sinceNs = System.nanoTime();
        try {
            return question.within(totalMs);
        } catch (Failure failure) {
            long leftMs = totalMs - TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - sinceNs);
            if (failure.kind() != Kind.UNKNOWN || isDeleted(partition, Math.max(1, leftMs))) {
                throw failure;
            }
            return empty;
        }
    }

    private boolean isDeleted(TopicIdPartition partition, long leftMs) throws Failure {
        List<?> args = List.of(SegmentForm.partition(partition));
        Reader<Boolean> reader = value -> value != null
            && Forms.uint31(Forms.array(value, 3, "a deletion").get(2), "its state")
                == RemotePartitionDeleteState.DELETE_PARTITION_FINISHED.id();
        try {
            return asked(new Question<>(
                partition, "partition_delete", left -> args, reader, leftMs, Math.min(leftMs, settings.lookupMs()),
                false));
        } catch (Failure failure) {
            if (failure.kind() == Kind.UNKNOWN) {
                return false;
            }
            throw failure;
        }
    }

    private void requireOwn(TopicIdPartition partition) throws Failure {
        if (!link.isOwn(partition)) {
            throw Failure.of(Kind.NOT_ASSIGNED, partition + " is neither led nor followed by this broker");
        }
    }

    private <T> T asked(Question<T> question) throws Failure {
        return waited(asking.ask(question), question.totalMs());
    }

    private static <T> T waited(CompletableFuture<T> answer, long timeoutMs) throws Failure {
        try {
            return answer.get(timeoutMs + GUARD_MS, TimeUnit.MILLISECONDS);
        } catch (ExecutionException error) {
            if (error.getCause() instanceof Failure failure) {
                throw failure;
            }
            throw new IllegalStateException("a question was not carried out", error.getCause());
        } catch (TimeoutException error) {
            throw Failure.of(Kind.UNREACHABLE, "a question outlived its deadline", error);
        } catch (InterruptedException error) {
            throw new InterruptException(error);
        }
    }

    private static Page readPage(TopicIdPartition partition, Object value) throws MalformedException {
        List<?> said = Forms.array(value, 2, "a page");
        List<RemoteLogSegmentMetadata> segments = new ArrayList<>();
        for (Object one : Forms.array(said.get(0), "the segments of a page")) {
            segments.add(SegmentForm.read(partition, one));
        }
        return new Page(segments, Forms.bytesOrNull(said.get(1), "what the next page is asked for with"));
    }
}
