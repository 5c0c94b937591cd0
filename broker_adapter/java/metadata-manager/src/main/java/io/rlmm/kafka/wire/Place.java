package io.rlmm.kafka.wire;

import java.util.List;

/** Where an event is stored. */
public record Place(int metadataPartition, long offset) {

    static Place readOrNull(Object value) throws MalformedException {
        if (value == null) {
            return null;
        }
        List<?> said = Forms.array(value, 2, "the place of an event");
        return new Place(Forms.uint31(said.get(0), "a metadata partition"), Forms.uint63(said.get(1), "an offset"));
    }
}
