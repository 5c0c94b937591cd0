package io.rlmm.kafka.link;

import io.rlmm.kafka.wire.Failure;
import io.rlmm.kafka.wire.Kind;
import io.rlmm.kafka.wire.Limits;
import io.rlmm.kafka.wire.MalformedException;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicIdPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A connection that comes back: dialled, greeted and told what this broker has, again and again.
 *
 * <p>Invariant: the report of leaders and followers stands on every connection before any question
 * that is asked after it was said, and is said until it is accepted.
 */
public final class Link {
    private static final Logger LOG = LoggerFactory.getLogger(Link.class);
    /** After so long without an answer the link asks whether the other end is there. */
    private static final long IDLE_MS = 10_000;
    private static final long WATCH_MS = 500;
    private static final long LASTING_MS = 2_000;

    private final Dialler dialler;
    private final Timer timer;
    private final OwnThreads threads;
    private final Telling telling;
    private final Takeover takeover;
    private final Pauses pauses;
    private final Reasons reasons = new Reasons();
    /** Guards all below; never held while anything is waited for but itself. */
    private final Object lock = new Object();
    private Connection connection;
    /** Requests made while there is no connection; a caller that gives up removes its own. */
    private final Set<Exchange> waiting = new LinkedHashSet<>();
    private Failure failure = Failure.of(Kind.UNREACHABLE, "the service has not answered yet");
    private Limits limits = Limits.UNTOLD;
    private boolean isClosed = false;
    private boolean isPinged = false;

    public Link(Dialler dialler, Timer timer, OwnThreads threads, Pauses pauses) {
        this.dialler = dialler;
        this.timer = timer;
        this.threads = threads;
        this.pauses = pauses;
        takeover = new Takeover(dialler.toString());
        telling = new Telling(lock, timer, this::steppedBack);
    }

    /** Begins, and returns at once. */
    public void start() {
        threads.make("link", this::run).start();
        timer.after(WATCH_MS, this::watch);
    }

    // ------------------------------------------------------------------------------- questions

    /** Whether an answer can be had soon, as far as can be told without asking. */
    public boolean isAnswering() {
        synchronized (lock) {
            return connection != null && !connection.isSilent();
        }
    }

    /** Whether the partition is this broker's, as it said itself. */
    public boolean isOwn(TopicIdPartition partition) {
        synchronized (lock) {
            return telling.assignment.contains(partition);
        }
    }

    public boolean isClosed() {
        synchronized (lock) {
            return isClosed;
        }
    }

    /** What the service takes, as it said last. */
    public Limits limits() {
        synchronized (lock) {
            return limits;
        }
    }

    /**
     * The result of one request, on the connection that there is or will be within so long; its
     * arguments are made when it is sent.
     *
     * <p>A failure of the kind UNREACHABLE says that nothing was sent, UNCERTAIN that it was sent
     * and not answered.
     */
    public CompletableFuture<Object> exchange(String method, Supplier<List<?>> args, long timeoutMs) {
        Exchange exchange = new Exchange(method, args);
        Runnable cancel = timer.after(Math.max(1, timeoutMs), exchange::timedOut);
        exchange.answer.whenComplete((result, error) -> {
            cancel.run();
            synchronized (lock) {
                waiting.remove(exchange);
            }
        });
        Connection there;
        boolean isOver;
        synchronized (lock) {
            there = connection;
            isOver = isClosed;
            if (there == null && !isOver && !exchange.answer.isDone()) {
                waiting.add(exchange);
            }
        }
        if (isOver) {
            exchange.closed();
        } else if (there != null) {
            exchange.begin(there);
        }
        return exchange.answer;
    }

    /** One request and what became of it. */
    private final class Exchange {
        private final String method;
        private final Supplier<List<?>> args;
        private final CompletableFuture<Object> answer = new CompletableFuture<>();
        private final long askedNs = System.nanoTime();
        /** Guarded by this: it is asked on one connection, or no caller waits any more, never both. */
        private Connection used;
        private boolean isGivenUp = false;

        private Exchange(String method, Supplier<List<?>> args) {
            this.method = method;
            this.args = args;
        }

        private void closed() {
            answer.completeExceptionally(Failure.of(Kind.CLOSED, "the metadata manager is closed"));
        }

        private void begin(Connection found) {
            synchronized (this) {
                if (isGivenUp || answer.isDone()) {
                    return;
                }
                used = found;
            }
            try {
                found.send(method, args.get()).whenComplete((result, error) -> heard(found, result, error));
            } catch (RuntimeException error) {
                answer.completeExceptionally(
                    Failure.of(Kind.REFUSED, method + " could not be sent: " + error, error));
            }
        }

        private void heard(Connection found, Object result, Throwable error) {
            if (error instanceof Failure refused && refused.kind() == Kind.SUPERSEDED) {
                steppedBack(found, refused);
            }
            if (error == null) {
                answer.complete(result);
            } else {
                answer.completeExceptionally(error);
            }
        }

        private void timedOut() {
            Connection asked;
            synchronized (this) {
                asked = used;
                isGivenUp = asked == null;
            }
            if (asked == null) {
                String why = whyNot();
                answer.completeExceptionally(Failure.of(Kind.UNREACHABLE, dialler + " was not reached: " + why));
            } else {
                asked.missed(askedNs);
                answer.completeExceptionally(
                    Failure.of(Kind.UNCERTAIN, dialler + " did not answer " + method + " in time"));
            }
        }
    }

    private String whyNot() {
        synchronized (lock) {
            return failure.getMessage();
        }
    }

    // ------------------------------------------------------------------------------ assignment

    /** This broker leads and follows these, too, from now on. Returns at once. */
    public void change(Collection<TopicIdPartition> leaders, Collection<TopicIdPartition> followers) {
        synchronized (lock) {
            telling.say(connection, telling.assignment.add(leaders, followers, limits));
        }
    }

    /** These are not this broker's any more. Returns at once. */
    public void stop(Collection<TopicIdPartition> partitions) {
        synchronized (lock) {
            telling.say(connection, telling.assignment.remove(partitions, limits));
        }
    }

    // --------------------------------------------------------------------- the one connection

    private void run() {
        int failures = 0;
        while (pause(failures == 0 ? 0 : pauses.afterMs(failures))) {
            long begunNs = System.nanoTime();
            boolean isConnected = attempt();
            long lastedMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begunNs);
            // A service that takes connections and drops them is not to be hammered either.
            boolean hasLasted = isConnected && lastedMs >= LASTING_MS;
            failures = hasLasted ? 1 : failures + 1;
            if (hasLasted) {
                reasons.clear();
            }
            if (isConnected) {
                reasons.lost();
            }
        }
    }

    /** Waits so long; false: there is nothing to connect for any more. */
    private boolean pause(long pauseMs) {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(pauseMs);
        synchronized (lock) {
            for (long left = pauseMs; left > 0 && !isClosed;) {
                try {
                    lock.wait(left);
                } catch (InterruptedException error) {
                    return false;
                }
                left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
            }
            return !isClosed && !takeover.isFinal();
        }
    }

    /** Connects and stays connected as long as it holds; whether there was a connection. */
    private boolean attempt() {
        Connection made;
        try {
            made = dialler.dial(timer);
        } catch (Failure error) {
            noteFailure(error);
            return false;
        } catch (Throwable error) {
            noteFailure(Failure.of(Kind.UNREACHABLE, String.valueOf(error.getMessage()), error));
            return false;
        }
        try {
            threads.make("writer", made::writeAll).start();
            begin(made);
        } catch (Throwable error) {
            // Such as a thread too many: this end must not wait for an answer that no thread reads.
            made.end(Failure.of(Kind.UNREACHABLE, String.valueOf(error.getMessage()), error));
            lost(made);
            return false;
        }
        LOG.info("Connected to rlmm at {}: {}", dialler, made.server());
        made.readAll();
        lost(made);
        return true;
    }

    private void begin(Connection made) throws Failure {
        List<Exchange> waited;
        synchronized (lock) {
            if (isClosed) {
                made.end(Failure.of(Kind.CLOSED, "the metadata manager is closed"));
                throw Failure.of(Kind.CLOSED, "the metadata manager is closed");
            }
            limits = made.limits();
            isPinged = false;
            telling.begin(made, limits);
            connection = made;
            waited = List.copyOf(waiting);
            waiting.clear();
        }
        takeover.refuted();
        waited.forEach(exchange -> exchange.begin(made));
    }

    private void lost(Connection made) {
        Failure why = made.whyOver();
        synchronized (lock) {
            if (connection == made) {
                connection = null;
                failure = why;
            }
            if (isClosed) {
                return;
            }
        }
        LOG.warn("The connection to rlmm at {} is lost: {}", dialler, why.getMessage());
    }

    private void noteFailure(Failure error) {
        Failure told = error.kind() == Kind.SUPERSEDED ? takeover.heard(error) : error;
        synchronized (lock) {
            if (isClosed) {
                return;
            }
            failure = told;
        }
        // Once per outage where people look; the rest is the same again, or said by the takeover.
        if (error.kind() != Kind.SUPERSEDED && reasons.isNew(told)) {
            LOG.warn("rlmm at {} cannot be connected to, tried again in the background: {}",
                dialler, told.getMessage());
        } else {
            LOG.debug("rlmm at {} cannot be connected to: {}", dialler, told.getMessage());
        }
    }

    /** Another start of this broker has taken over: nothing more is asked on this connection. */
    private void steppedBack(Connection from, Failure error) {
        Failure told;
        synchronized (lock) {
            if (from != connection) {
                return;
            }
            connection = null;
            told = takeover.heard(error);
            failure = told;
        }
        from.end(told);
    }

    private void watch() {
        Connection watched;
        boolean isDue;
        synchronized (lock) {
            if (isClosed) {
                return;
            }
            watched = connection;
            long silentMs = watched == null
                ? 0 : TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - watched.heardNs());
            int idleMs = limits.idleMs();
            long patienceMs = idleMs == 0 ? IDLE_MS : Math.max(1, Math.min(IDLE_MS, idleMs / 3));
            isDue = watched != null && !isPinged && (silentMs >= patienceMs || watched.isSilent());
            isPinged |= isDue;
        }
        try {
            if (isDue) {
                exchange("ping", List::of, IDLE_MS).whenComplete((result, error) -> answered(watched, error));
            }
        } finally {
            timer.after(WATCH_MS, this::watch);
        }
    }

    private void answered(Connection pinged, Throwable error) {
        synchronized (lock) {
            if (connection != pinged) {
                return;
            }
            isPinged = false;
        }
        if (error instanceof Failure silence && silence.kind() == Kind.UNCERTAIN) {
            pinged.end(Failure.of(Kind.UNREACHABLE, "nothing was heard for a while"));
        }
    }

    /** Refuses everything from now on, and fails the waiting requests. */
    public void close() {
        Connection last;
        List<Exchange> waited;
        synchronized (lock) {
            isClosed = true;
            last = connection;
            connection = null;
            waited = List.copyOf(waiting);
            waiting.clear();
            lock.notifyAll();
        }
        dialler.close();
        if (last != null) {
            last.end(Failure.of(Kind.CLOSED, "the metadata manager is closed"));
        }
        waited.forEach(Exchange::closed);
    }
}
