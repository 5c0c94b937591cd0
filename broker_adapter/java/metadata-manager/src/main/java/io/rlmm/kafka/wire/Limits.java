package io.rlmm.kafka.wire;

import java.util.Map;

/** What a service takes, and how long it waits; 0 where it says nothing. */
public record Limits(
        int frameBytesMax, int waitingMax, int pageMax, int idleMs, int timeoutMsMax, int assignMax) {
    /** What surely is taken by any service. */
    public static final Limits UNTOLD = new Limits(Frames.BYTES_MAX_UNTOLD, 0, 0, 0, 0, 0);

    static Limits read(Object value) throws MalformedException {
        Map<?, ?> said = Forms.map(value, "the limits of a service");
        return new Limits(
            Forms.uint31(said.get("frame_bytes_max"), "frame_bytes_max"),
            number(said, "waiting_max"),
            number(said, "page_max"),
            number(said, "idle_ms"),
            number(said, "timeout_ms_max"),
            number(said, "assign_max"));
    }

    private static int number(Map<?, ?> said, String name) throws MalformedException {
        return said.get(name) == null ? 0 : Forms.uint31(said.get(name), name);
    }
}
