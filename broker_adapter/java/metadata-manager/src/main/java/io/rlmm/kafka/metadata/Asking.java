package io.rlmm.kafka.metadata;

import io.rlmm.kafka.link.Link;
import io.rlmm.kafka.link.Pauses;
import io.rlmm.kafka.link.Timer;
import io.rlmm.kafka.wire.Failure;
import io.rlmm.kafka.wire.Kind;
import io.rlmm.kafka.wire.MalformedException;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongFunction;
import org.apache.kafka.common.TopicIdPartition;

/**
 * Asks until there is an answer or the time is up. A question may be asked again whatever became of
 * it. Invariant: every future ends by its deadline, or with the manager.
 */
final class Asking {
    private static final Pauses PAUSES = new Pauses(10, 500);
    /** Kept for a last attempt: one that begins with less could not be answered. */
    private static final long LAST_MS = 20;
    /** The pause before a caller gets a final refusal. */
    private static final long PACE_MS = 300;

    private final Link link;
    private final Timer timer;
    private final Set<CompletableFuture<?>> unanswered = ConcurrentHashMap.newKeySet();

    Asking(Link link, Timer timer) {
        this.link = link;
        this.timer = timer;
    }

    /** Reads a result. */
    interface Reader<T> {
        T read(Object result) throws MalformedException;
    }

    /**
     * A question.
     *
     * @param args its arguments, for the milliseconds that are left
     * @param totalMs how long it may take altogether
     * @param absentMs how long it may take while no service can answer; at most the whole
     * @param insists whether it is asked again where it was refused for good, too: an operator may give
     *     the missing right, or repair a fault, and there is no second chance to ask
     */
    record Question<T>(
            TopicIdPartition partition, String method, LongFunction<List<?>> args, Reader<T> reader,
            long totalMs, long absentMs, boolean insists) { }

    /** The answer. */
    <T> CompletableFuture<T> ask(Question<T> question) {
        Attempts<T> attempts = new Attempts<>(question);
        unanswered.add(attempts.answer);
        attempts.answer.whenComplete((result, error) -> unanswered.remove(attempts.answer));
        attempts.next();
        return attempts.answer;
    }

    /** Ends all that is not answered; the link and the timer are closed already. */
    void close() {
        Failure closed = Failure.of(Kind.CLOSED, "the metadata manager is closed");
        unanswered.forEach(answer -> answer.completeExceptionally(closed));
    }

    /** Whether a refusal only says that the service does not know this broker's partitions yet. */
    boolean isUntold(Failure failure, TopicIdPartition partition) {
        return failure.kind() == Kind.NOT_ASSIGNED && link.isOwn(partition);
    }

    private final class Attempts<T> {
        private final Question<T> question;
        private final CompletableFuture<T> answer = new CompletableFuture<>();
        private final long sinceNs = System.nanoTime();
        private int failures = 0;
        private Failure refusedBefore;

        private Attempts(Question<T> question) {
            this.question = question;
        }

        private long leftMs(long ofMs) {
            return ofMs - TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - sinceNs);
        }

        private void next() {
            long endMs = link.isAnswering() ? question.totalMs() : question.absentMs();
            link.exchange(
                question.method(), () -> question.args().apply(Math.max(1, leftMs(endMs))), Math.max(1, leftMs(endMs))
            ).whenComplete(this::heard);
        }

        private void heard(Object result, Throwable error) {
            if (error == null) {
                try {
                    answer.complete(question.reader().read(result));
                } catch (MalformedException | RuntimeException malformed) {
                    failed(Failure.of(Kind.MALFORMED, String.valueOf(malformed.getMessage()), malformed));
                }
            } else if (error instanceof Failure failure) {
                failed(meant(failure));
            } else {
                answer.completeExceptionally(error);
            }
        }

        private Failure meant(Failure failure) {
            if (link.isClosed()) {
                return failure.as(Kind.CLOSED);
            } else if (failure.kind() == Kind.UNCERTAIN) {
                return failure.as(Kind.UNREACHABLE);
            }
            return isUntold(failure, question.partition()) ? failure.as(Kind.NOT_READY) : failure;
        }

        private void failed(Failure failure) {
            failures++;
            long asked = failure.refusal() == null ? 0 : failure.refusal().retryAfterMs();
            long left = leftMs(question.absentMs());
            if (!failure.passes() && !(question.insists() && failure.isUnsettled())) {
                // Not at once: the broker asks again at once after a refusal, and its log would fill by
                // the thousand lines a second.
                long pause = failure.isUnsettled() ? Math.max(0, Math.min(left, PACE_MS)) : 0;
                later(pause, () -> answer.completeExceptionally(failure));
            } else if (left <= LAST_MS) {
                // What a service said before it fell silent tells more than the silence.
                Failure told = failure.refusal() == null && refusedBefore != null ? refusedBefore : failure;
                answer.completeExceptionally(told);
            } else {
                refusedBefore = failure.refusal() == null ? refusedBefore : failure;
                later(Math.min(left - LAST_MS, Math.max(asked, PAUSES.afterMs(failures))), this::next);
            }
        }

        private void later(long pauseMs, Runnable task) {
            if (pauseMs <= 0) {
                task.run();
            } else {
                timer.after(pauseMs, task);
            }
        }
    }
}
