package io.rlmm.kafka.link;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.rlmm.kafka.wire.Failure;
import io.rlmm.kafka.wire.Kind;
import io.rlmm.kafka.wire.Refusal;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** How long what a broker leads and follows waits to be said again. */
class TellingTest {
    private static final int MANY = 30;

    private static long longestMs(Failure failure) {
        return Telling.pausesFor(failure).afterMs(MANY);
    }

    private static Failure refused(String code, Map<?, ?> fields) {
        return Failure.refused(new Refusal(code, "no", true, fields));
    }

    @Test
    void pausesStayShortWhileTheServiceLooksForKafka() {
        assertTrue(longestMs(refused("not-ready", Map.of("reason", "connecting"))) <= 600);
    }

    @Test
    void pausesOfAllOtherRefusalsGrow() {
        for (Failure other : new Failure[] {
            refused("too-busy", Map.of()), refused("not-ready", Map.of("reason", "loading")),
            refused("not-ready", Map.of()), refused("over-budget", Map.of("reason", "connecting")),
            Failure.of(Kind.NOT_READY, "of this side")}) {
            assertTrue(longestMs(other) >= 4_000, other::toString);
        }
    }
}
