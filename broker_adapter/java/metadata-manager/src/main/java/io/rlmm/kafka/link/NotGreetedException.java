package io.rlmm.kafka.link;

import java.io.IOException;

/** The other end took the connection and hung up, or was silent, instead of a greeting. */
final class NotGreetedException extends IOException {
    private static final long serialVersionUID = 1L;

    NotGreetedException(boolean isEncrypted, IOException cause) {
        super("the service took the connection and did not greet ("
            + (cause.getMessage() == null ? "it has hung up" : cause.getMessage()) + "): "
            + (isEncrypted ? "does it trust the certificate that is shown to it?" : "does it ask for TLS?"), cause);
    }
}
