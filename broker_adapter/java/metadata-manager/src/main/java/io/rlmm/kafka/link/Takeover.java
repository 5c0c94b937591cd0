package io.rlmm.kafka.link;

import io.rlmm.kafka.wire.Failure;
import io.rlmm.kafka.wire.Kind;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The reaction to a service's answer that another start of this broker has taken over: logged where
 * operators look, tried again a few times, and then given up, so that two brokers with one id do not
 * take turns.
 */
final class Takeover {
    private static final Logger LOG = LoggerFactory.getLogger(Takeover.class);
    private static final int TIMES_MAX = 3;
    private final String address;
    private int times = 0;

    Takeover(String address) {
        this.address = address;
    }

    synchronized boolean isFinal() {
        return times >= TIMES_MAX;
    }

    /** It was said; the failure of every request from now on. */
    synchronized Failure heard(Failure error) {
        times++;
        if (isFinal()) {
            LOG.error("At rlmm {} another broker has this broker's id; given up, restart this broker: {}",
                address, error.getMessage());
        } else {
            LOG.warn("At rlmm {} this broker's place is taken: {}", address, error.getMessage());
        }
        return error.as(Kind.UNREACHABLE);
    }

    /** The service takes this start for one that may speak. */
    synchronized void refuted() {
        times = 0;
    }
}
