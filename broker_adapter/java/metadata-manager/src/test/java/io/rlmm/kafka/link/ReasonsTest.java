package io.rlmm.kafka.link;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.rlmm.kafka.wire.Failure;
import io.rlmm.kafka.wire.Kind;
import io.rlmm.kafka.wire.Refusal;
import java.io.EOFException;
import java.net.ConnectException;
import java.nio.file.NoSuchFileException;
import java.util.Map;
import java.util.stream.IntStream;
import javax.net.ssl.SSLHandshakeException;
import org.junit.jupiter.api.Test;

/** What is told of an outage, and that it is not told a thousand times. */
class ReasonsTest {
    private final Reasons reasons = new Reasons();

    private static Failure away(Exception cause) {
        return Failure.of(Kind.UNREACHABLE, "away", cause);
    }

    private static Failure refused(String code) {
        return Failure.refused(new Refusal(code, "no", false, Map.of()));
    }

    @Test
    void eachSortOfReasonIsToldOnceAnOutage() {
        for (Failure one : new Failure[] {
            away(new ConnectException("refused")), refused("not-permitted"), refused("wrong-cluster"),
            away(new SSLHandshakeException("unknown authority")), away(new NoSuchFileException("token")),
            away(new NotGreetedException(true, new EOFException()))}) {
            assertTrue(reasons.isNew(one), one::toString);
            assertFalse(reasons.isNew(one), one::toString);
        }
        reasons.clear();
        assertTrue(reasons.isNew(refused("not-permitted")));
    }

    @Test
    void thatItIsAwayIsNotSaidBehindThatItWasLost() {
        reasons.lost();
        assertFalse(reasons.isNew(away(new ConnectException("refused"))));
        assertTrue(reasons.isNew(refused("not-permitted")));
    }

    @Test
    void howeverManyReasonsThereAreTheLogIsNotFilled() {
        assertEquals(8, IntStream.range(0, 1_000).filter(at -> reasons.isNew(refused("reason-" + at))).count());
    }
}
