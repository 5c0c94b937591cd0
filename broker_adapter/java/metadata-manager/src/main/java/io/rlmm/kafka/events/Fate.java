package io.rlmm.kafka.events;

import io.rlmm.kafka.wire.Forms;
import io.rlmm.kafka.wire.MalformedException;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteMetadata;

/**
 * What the state says of an event whose answer was lost.
 *
 * <p>A repeat that is equal in every field changes nothing where the first one had its effect, so an
 * event of which nothing is seen may be stored again.
 */
public enum Fate {
    /** It had its effect, or what it asks for is so without it. */
    HAD_EFFECT,
    /** It had no effect so far; it may still be on its way. */
    NOT_SEEN,
    /** The state is beyond the event, and the log does not show whether the event led to it. */
    PASSED;

    /** What the answer to the event's own question says; null is nothing there. */
    public static Fate of(Event event, Object found) throws MalformedException {
        if (event instanceof Event.PartitionDelete delete) {
            return ofDelete(delete.delete(), found);
        }
        Optional<RemoteLogSegmentMetadata> segment = SegmentForm.readOptional(event.partition(), found);
        if (event instanceof Event.Start start) {
            return segment.map(one -> ofStart(start.segment(), one)).orElse(NOT_SEEN);
        }
        RemoteLogSegmentMetadataUpdate update = ((Event.Update) event).update();
        if (segment.isEmpty()) {
            // The end of a deletion leaves nothing behind, and nothing is what its beginning asks
            // for as well: another broker has been faster.
            return isDeletion(update.state()) ? HAD_EFFECT : NOT_SEEN;
        }
        return ofUpdate(update, segment.get());
    }

    /**
     * A segment in a later state may have been started by another writer with the same event: the service
     * refuses that event, so it has not had its effect here either.
     */
    private static Fate ofStart(RemoteLogSegmentMetadata event, RemoteLogSegmentMetadata found) {
        if (found.state() == event.state()) {
            return found.equals(event) ? HAD_EFFECT : NOT_SEEN;
        }
        List<Object> wanted = SegmentForm.value(event);
        List<Object> there = SegmentForm.value(found);
        // Broker, time, custom metadata and state are those of the last update.
        return without(wanted, 3, 5, 8, 9).equals(without(there, 3, 5, 8, 9)) ? PASSED : NOT_SEEN;
    }

    private static List<Object> without(List<Object> segment, int... places) {
        Object[] left = segment.toArray();
        left[0] = null; // The id, which was asked for; arrays of bytes are not compared by what they hold.
        for (int place : places) {
            left[place] = null;
        }
        return Arrays.asList(left);
    }

    private static Fate ofUpdate(RemoteLogSegmentMetadataUpdate event, RemoteLogSegmentMetadata found) {
        if (found.state().id() > event.state().id()) {
            // A deletion has its effect. The broker that finished a copy must not believe
            // that it is there to be read: its local records would go.
            return event.state() == RemoteLogSegmentState.COPY_SEGMENT_FINISHED ? PASSED : HAD_EFFECT;
        }
        if (found.state() == event.state() && isDeletion(event.state())) {
            return HAD_EFFECT; // Whichever broker began it.
        }
        boolean isThere = found.state() == event.state()
            && found.brokerId() == event.brokerId()
            && found.eventTimestampMs() == event.eventTimestampMs()
            && event.customMetadata().equals(found.customMetadata());
        return isThere ? HAD_EFFECT : NOT_SEEN;
    }

    private static boolean isDeletion(RemoteLogSegmentState state) {
        return state == RemoteLogSegmentState.DELETE_SEGMENT_STARTED
            || state == RemoteLogSegmentState.DELETE_SEGMENT_FINISHED;
    }

    private static Fate ofDelete(RemotePartitionDeleteMetadata event, Object found) throws MalformedException {
        if (found == null) {
            return NOT_SEEN;
        }
        List<?> said = Forms.array(found, 3, "a deletion");
        int state = Forms.uint31(said.get(2), "the state of a deletion");
        if (state != event.state().id()) {
            return state > event.state().id() ? HAD_EFFECT : NOT_SEEN;
        }
        boolean isSame = Forms.int32(said.get(0), "a broker id") == event.brokerId()
            && Forms.int64(said.get(1), "a timestamp") == event.eventTimestampMs();
        return isSame ? HAD_EFFECT : NOT_SEEN;
    }
}
