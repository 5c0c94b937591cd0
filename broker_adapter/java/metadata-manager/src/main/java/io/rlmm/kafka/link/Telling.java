package io.rlmm.kafka.link;

import io.rlmm.kafka.wire.Failure;
import io.rlmm.kafka.wire.Kind;
import io.rlmm.kafka.wire.Limits;
import java.util.List;
import java.util.function.BiConsumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells a service what this broker leads and follows, until all of it is accepted.
 *
 * <p>A refused report is sent anew as a whole after a pause. All of it under the lock of the link, so
 * that the order in which a broker said things is the order in which they are sent.
 */
final class Telling {
    private static final Logger LOG = LoggerFactory.getLogger(Telling.class);
    private static final Pauses PAUSES = new Pauses(50, 5_000);
    /**
     * While the service looks for Kafka itself: that passes as soon as this broker is up, and until
     * all of it is accepted no consumer is given anything of the tier.
     */
    private static final Pauses WHILE_CONNECTING = new Pauses(50, 500);
    private static final String CONNECTING = "connecting";

    final OwnAssignment assignment = new OwnAssignment();
    private final Reasons reasons = new Reasons();
    private final Object lock;
    private final Timer timer;
    private final BiConsumer<Connection, Failure> superseded;
    private Connection told;
    private Limits limits = Limits.UNTOLD;
    private int unheard = 0;
    private int refusals = 0;
    private boolean isRefused = false;

    Telling(Object lock, Timer timer, BiConsumer<Connection, Failure> superseded) {
        this.lock = lock;
        this.timer = timer;
        this.superseded = superseded;
    }

    /** A connection to a service that may know nothing: all of it, before any question. */
    void begin(Connection connection, Limits taken) {
        told = connection;
        limits = taken;
        unheard = 0;
        refusals = 0;
        isRefused = false;
        reasons.clear();
        say(connection, assignment.whole(taken));
    }

    /** Sends messages with nothing between them; without a connection the next one begins anew. */
    void say(Connection connection, List<OwnAssignment.Message> messages) {
        if (connection == null) {
            return;
        }
        unheard += messages.size();
        for (OwnAssignment.Message message : messages) {
            connection.send(message.method(), message.args())
                .whenComplete((result, error) -> heard(connection, error));
        }
    }

    private void heard(Connection connection, Throwable error) {
        synchronized (lock) {
            if (connection != told) {
                return;
            }
            unheard--;
            if (!(error instanceof Failure failure)) {
                accepted();
                return;
            }
            if (failure.kind() != Kind.SUPERSEDED && !connection.isOver()) {
                refused(connection, failure);
            }
        }
        if (error instanceof Failure failure && failure.kind() == Kind.SUPERSEDED) {
            superseded.accept(connection, failure);
        }
    }

    private void accepted() {
        if (unheard == 0 && !isRefused) {
            refusals = 0;
            reasons.clear();
            assignment.accepted();
        }
    }

    private void refused(Connection connection, Failure failure) {
        if (isRefused) {
            return;
        }
        isRefused = true;
        refusals++;
        long pauseMs = pausesFor(failure).afterMs(refusals);
        if (reasons.isNew(failure)) {
            LOG.warn("rlmm does not take what this broker leads and follows, said again: {}", failure.getMessage());
        }
        timer.after(pauseMs, () -> again(connection));
    }

    /** How long it is waited before what met this failure is said again. */
    static Pauses pausesFor(Failure failure) {
        boolean isConnecting = failure.kind() == Kind.NOT_READY
            && failure.refusal() != null
            && CONNECTING.equals(failure.refusal().field("reason"));
        return isConnecting ? WHILE_CONNECTING : PAUSES;
    }

    private void again(Connection connection) {
        synchronized (lock) {
            if (connection == told && !connection.isOver()) {
                isRefused = false;
                say(connection, assignment.whole(limits));
            }
        }
    }
}
