package io.rlmm.kafka.wire;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The first request of a connection, and what its answer says. */
public final class Hello {
    /** The version of the protocol that is spoken here. */
    public static final long VERSION = 1;

    private Hello() { }

    /**
     * The greeting of a broker.
     *
     * @param instance one start of the broker's manager, 16 bytes drawn at random
     * @param bootstrap where the broker's cluster is, for a service that was not told; may be null
     */
    public record Caller(String client, String clusterId, int brokerId, byte[] instance, String bootstrap) {

        /** The argument of hello, with credentials if there are any. */
        public Map<String, Object> said(String token) {
            Map<String, Object> said = new LinkedHashMap<>();
            said.put("versions", List.of(VERSION));
            said.put("client", client);
            if (token != null) {
                said.put("token", token);
            }
            if (clusterId != null) {
                said.put("cluster_id", clusterId);
            }
            said.put("broker_id", brokerId);
            said.put("instance", instance);
            if (bootstrap != null) {
                said.put("bootstrap", bootstrap);
            }
            return said;
        }
    }

    /** What the service says of itself. */
    public record Greeting(String server, Limits limits) {

        /** The result of hello. */
        public static Greeting read(Object value) throws MalformedException {
            Map<?, ?> said = Forms.map(value, "the answer to hello");
            long version = Forms.uint31(said.get("version"), "the version of a service");
            if (version != VERSION) {
                throw new MalformedException("the service chose version " + version + ", which was not offered");
            }
            return new Greeting(Forms.text(said.get("server"), "the server"), Limits.read(said.get("limits")));
        }
    }
}
