package io.rlmm.kafka.wire;

import java.util.List;

/**
 * What a service says to one request: a result, or a refusal.
 *
 * @param id of the request; null where the service could not tell which one is meant
 * @param refusal null where there is a result
 */
public record Answer(Long id, Refusal refusal, Object result) {

    /** The answer in the payload of a frame. */
    public static Answer read(byte[] payload) throws MalformedException {
        List<?> message = Forms.array(Unpacker.unpack(payload), 3, "an answer");
        Long id = null;
        if (message.get(0) != null) {
            id = Forms.uint63(message.get(0), "the id of an answer");
            if (id > Frames.ID_MAX) {
                throw new MalformedException("no request has the id " + id);
            }
        }
        Refusal refusal = message.get(1) == null ? null : Refusal.read(message.get(1));
        if (refusal == null && id == null) {
            throw new MalformedException("an answer without an id");
        }
        if (refusal != null) {
            Forms.nil(message.get(2), "the result of what was refused");
        }
        return new Answer(id, refusal, message.get(2));
    }
}
