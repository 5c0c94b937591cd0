package io.rlmm.kafka.metadata;

import io.rlmm.kafka.events.Event;
import io.rlmm.kafka.events.Fate;
import io.rlmm.kafka.events.Written;
import io.rlmm.kafka.link.Link;
import io.rlmm.kafka.link.Pauses;
import io.rlmm.kafka.link.Timer;
import io.rlmm.kafka.metadata.Asking.Question;
import io.rlmm.kafka.wire.Failure;
import io.rlmm.kafka.wire.Kind;
import io.rlmm.kafka.wire.MalformedException;
import io.rlmm.kafka.wire.Place;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * Stores events, and finds out what became of those whose answer was lost.
 *
 * <p>A broker takes a failed update for one that was not stored, and copies the segment again, each
 * time. So a future fails only when the event surely has no effect, or when for two minutes no service
 * could say; and the end of a copy is tried for longer than a service takes to come back. An event
 * is sent twice only where the second one equals the first in every field.
 */
final class Writes {
    private static final Pauses PAUSES = new Pauses(20, 1_000);
    /** Share of the time left by which a service is to answer before it is given up here. */
    private static final double MARGIN = 0.1;
    private static final long MARGIN_MS_MAX = 1_000;
    private static final long TIMEOUT_MS_UNTOLD = 30_000;
    /** Events under way at a time; a broker that deletes a topic has one for each segment at once. */
    private static final int UNDER_WAY_MAX = 128;

    private final Link link;
    private final Asking asking;
    private final Timer timer;
    private final Settings settings;
    private final Executor answers;
    private final Set<Storing> unfinished = ConcurrentHashMap.newKeySet();
    /** Guards itself and the two below. */
    private final Queue<Storing> queued = new ArrayDeque<>();
    private int underWay = 0;
    private long storedNs = System.nanoTime();

    /** Futures of a broker are completed by <code>answers</code>, which it may keep busy. */
    Writes(Link link, Asking asking, Timer timer, Settings settings, Executor answers) {
        this.link = link;
        this.asking = asking;
        this.timer = timer;
        this.settings = settings;
        this.answers = answers;
    }

    /** Stores an event; the future ends when this manager's own questions know it. */
    CompletableFuture<Void> store(Event event) {
        Storing storing = new Storing(event);
        unfinished.add(storing);
        // A service refuses more than it takes, and callers that wait for reads need room, too.
        int told = link.limits().waitingMax();
        int mostUnderWay = told == 0 ? UNDER_WAY_MAX : Math.max(1, Math.min(UNDER_WAY_MAX, told / 2));
        boolean isNext;
        synchronized (queued) {
            isNext = underWay < mostUnderWay;
            if (isNext) {
                underWay++;
            } else {
                queued.add(storing);
            }
        }
        // After a close no thread would ever take it from the queue.
        if (isNext || link.isClosed()) {
            storing.send();
        }
        return storing.told;
    }

    /** One has ended; the next is begun elsewhere, since it may end at once as well. */
    private void ended(Storing storing, boolean isStored) {
        unfinished.remove(storing);
        Storing next;
        synchronized (queued) {
            if (isStored) {
                storedNs = System.nanoTime();
            }
            next = queued.poll();
            if (next == null) {
                underWay--;
            }
        }
        if (next != null) {
            timer.after(0, next::begin);
        }
    }

    private static long millisSince(long timeNs) {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - timeNs);
    }

    private long storedNs() {
        synchronized (queued) {
            return storedNs;
        }
    }

    /** Ends all that is not finished, on the thread that closes. */
    void close() {
        Failure closed = Failure.of(Kind.CLOSED, "the metadata manager is closed; whether it is stored is not known");
        unfinished.forEach(storing -> storing.told.completeExceptionally(KafkaErrors.ofWrite(closed)));
        unfinished.clear();
    }

    /** One event on its way. */
    private final class Storing {
        private final Event event;
        private final CompletableFuture<Void> told = new CompletableFuture<>();
        private long sinceNs = System.nanoTime();
        private int failures = 0;
        /** It was sent at least once without an answer that says that it is not stored. */
        private boolean isPerhapsStored = false;
        private Place storedAt;

        private Storing(Event event) {
            this.event = event;
        }

        /** Its turn has come: its time begins now, unless nothing was stored for as long already. */
        private void begin() {
            if (storedNs() - sinceNs > 0) {
                sinceNs = storedNs();
            }
            if (leftMs() <= 0) {
                fail(Failure.of(Kind.UNREACHABLE, "not sent: no event could be stored for a while"));
            } else {
                sinceNs = System.nanoTime();
                send();
            }
        }

        private long leftMs() {
            long wholeMs = isPerhapsStored ? settings.outcomeMs() : settings.writeMs();
            if (event.endsCopy()) {
                wholeMs = Math.max(wholeMs, settings.finishMs());
            }
            return wholeMs - millisSince(sinceNs);
        }

        private void send() {
            long wholeMs = Math.max(1, Math.min(leftMs(), settings.writeMs()));
            long begunNs = System.nanoTime();
            // It may wait for a connection first; the service gets the time that is left by then.
            link.exchange(event.method(), () -> args(wholeMs - millisSince(begunNs)), wholeMs)
                .whenComplete(this::answered);
        }

        private void answered(Object result, Throwable error) {
            if (error == null) {
                written(result);
            } else if (error instanceof Failure failure) {
                failed(failure);
            } else {
                fail(Failure.of(Kind.REFUSED, "it could not be sent: " + error, error));
            }
        }

        /**
         * An event for our partition is refused until the service knows; one for another is stored all the
         * same, as Kafka's own manager does, and shows up once it is assigned.
         */
        private List<Object> args(long leftMs) {
            long margin = Math.min(MARGIN_MS_MAX, (long) (MARGIN * Math.max(0, leftMs)));
            long mostMs = link.limits().timeoutMsMax() == 0 ? TIMEOUT_MS_UNTOLD : link.limits().timeoutMsMax();
            List<Object> args = new ArrayList<>(event.args());
            args.add(Map.of(
                "unassigned", link.isOwn(event.partition()) ? "refuse" : "store",
                "timeout_ms", Math.max(1, Math.min(leftMs - margin, mostMs))));
            return args;
        }

        private void written(Object result) {
            try {
                Written written = Written.read(result);
                if (written.isJudged()) {
                    done();
                } else {
                    fail(Failure.of(Kind.NOT_ASSIGNED, "the event is stored at " + written.place()
                        + ", but its partition is not assigned to this broker: " + event.partition()));
                }
            } catch (MalformedException | RuntimeException error) {
                perhapsStored(Failure.of(Kind.UNCERTAIN, String.valueOf(error.getMessage()), error));
            }
        }

        private void failed(Failure failure) {
            if (link.isClosed()) {
                fail(failure.as(Kind.CLOSED));
            } else if (asking.isUntold(failure, event.partition())) {
                again(failure.as(Kind.NOT_READY));
            } else {
                switch (failure.kind()) {
                    case NOT_READY, UNREACHABLE, BUSY, REFUSED_FOR_NOW, NOT_ASSIGNED, SUPERSEDED -> again(failure);
                    case UNCERTAIN, UNHEARD, MALFORMED -> perhapsStored(failure);
                    default -> refused(failure);
                }
            }
        }

        /** It is not stored by this attempt, and may be by a later one. */
        private void again(Failure failure) {
            failures++;
            long asked = failure.refusal() == null ? 0 : failure.refusal().retryAfterMs();
            long pause = Math.max(asked, PAUSES.afterMs(failures));
            if (pause >= leftMs()) {
                fail(isPerhapsStored ? failure.as(Kind.UNCERTAIN) : failure);
            } else {
                timer.after(pause, this::send);
            }
        }

        private void perhapsStored(Failure failure) {
            isPerhapsStored = true;
            if (failure.storedAt() != null) {
                storedAt = failure.storedAt();
            }
            look(failure);
        }

        /** A refusal of a repeat says nothing of the first one, and may be due to what that did. */
        private void refused(Failure failure) {
            if (isPerhapsStored) {
                look(failure);
            } else {
                fail(failure);
            }
        }

        private void look(Failure failure) {
            long left = leftMs();
            if (left <= 0) {
                fail(failure.as(Kind.UNCERTAIN));
                return;
            }
            Question<Fate> question = new Question<>(
                event.partition(), event.lookMethod(), this::lookArgs, result -> Fate.of(event, result), left, left,
                true);
            asking.ask(question).whenComplete((fate, error) -> looked(failure, fate, error));
        }

        private List<?> lookArgs(long leftMs) {
            List<Object> args = new ArrayList<>(event.lookArgs());
            args.add(Map.of("linearizable", true, "timeout_ms", Math.min(leftMs, TIMEOUT_MS_UNTOLD)));
            return args;
        }

        private void looked(Failure failure, Fate fate, Throwable error) {
            if (error == null) {
                act(failure, fate);
            } else if (error instanceof Failure refusal && refusal.kind() == Kind.UNKNOWN) {
                try {
                    act(failure, Fate.of(event, null));
                } catch (MalformedException impossible) {
                    fail(failure.as(Kind.UNCERTAIN));
                }
            } else {
                // The reason of the uncertainty is worth more than that of the lost answer.
                fail(error instanceof Failure refusal && refusal.kind() == Kind.CLOSED
                    ? refusal : failure.as(Kind.UNCERTAIN));
            }
        }

        private void act(Failure failure, Fate fate) {
            boolean isRejected = failure.kind() == Kind.REJECTED;
            if (fate == Fate.HAD_EFFECT) {
                done();
            } else if (fate == Fate.PASSED || isRejected || storedAt != null) {
                // It is in the log, or cannot get there any more, and changed nothing.
                fail(isRejected ? failure : Failure.of(Kind.REJECTED,
                    "the state has moved on, or refused it: " + failure.getMessage(), failure));
            } else {
                again(failure);
            }
        }

        private void done() {
            ended(this, true);
            tell(() -> told.complete(null));
        }

        private void fail(Failure failure) {
            ended(this, false);
            Exception meant = KafkaErrors.ofWrite(failure);
            tell(() -> told.completeExceptionally(meant));
        }

        private void tell(Runnable telling) {
            try {
                answers.execute(telling);
            } catch (RejectedExecutionException closed) {
                telling.run();
            }
        }
    }
}
