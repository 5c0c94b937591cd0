package io.rlmm.kafka.events;

import io.rlmm.kafka.wire.Forms;
import io.rlmm.kafka.wire.MalformedException;
import io.rlmm.kafka.wire.Place;
import java.util.List;
import java.util.Set;

/** Where an event was stored and what became of it. */
public record Written(Place place, String verdict) {
    private static final Set<String> VERDICTS = Set.of("applied", "duplicate", "stored-not-assigned");

    /** The result of a write. */
    public static Written read(Object value) throws MalformedException {
        List<?> said = Forms.array(value, 3, "the answer to a write");
        String verdict = Forms.text(said.get(2), "a verdict");
        if (!VERDICTS.contains(verdict)) {
            throw new MalformedException("there is no verdict " + verdict);
        }
        int partition = Forms.uint31(said.get(0), "a metadata partition");
        return new Written(new Place(partition, Forms.uint63(said.get(1), "an offset")), verdict);
    }

    /** Whether it had its effect here; else it is stored, and this service does not judge it. */
    public boolean isJudged() {
        return !verdict.equals("stored-not-assigned");
    }
}
