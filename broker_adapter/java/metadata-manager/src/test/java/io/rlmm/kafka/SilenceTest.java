package io.rlmm.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.rlmm.kafka.FakeService.Reaction;
import org.apache.kafka.common.errors.ReplicaNotAvailableException;
import org.junit.jupiter.api.Test;

/** A service whose machine is gone: the connection stands, and nothing comes on it any more. */
class SilenceTest extends Fixture {
    /** A ping is given ten seconds. */
    private static final long GIVEN_UP_MS = 40_000;

    @Test
    void aConnectionOnWhichNothingIsHeardIsGivenUpAndMadeAnew() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        copied(manager, 0);
        service.script(request -> request.connection() == 1 ? Reaction.KEEP_SILENT : Reaction.ANSWER);
        assertThrows(ReplicaNotAvailableException.class, () -> manager.remoteLogSegmentMetadata(ORDERS, 0, 0));
        assertFalse(manager.isReady(ORDERS));
        until(() -> manager.isReady(ORDERS), GIVEN_UP_MS);
        assertHolds(manager, 0);
        assertEquals(2, service.of("hello").size());
    }
}
