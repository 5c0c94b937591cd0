package io.rlmm.kafka.link;

import io.rlmm.kafka.wire.Failure;
import java.nio.file.FileSystemException;
import java.security.GeneralSecurityException;
import java.util.HashSet;
import java.util.Set;
import javax.net.ssl.SSLException;

/**
 * Why a service was not reached in one outage, each sort of reason once.
 *
 * <p>A service that is started with a token that it does not know is first away and then refuses:
 * the operator has to see the second reason in the log, too, and not a thousand times.
 */
final class Reasons {
    private static final String AWAY = "away";
    private static final int TOLD_MAX = 8;
    private final Set<String> told = new HashSet<>();

    /** Whether nothing of its sort was told in this outage; from now on it was. */
    synchronized boolean isNew(Failure failure) {
        return told.size() < TOLD_MAX && told.add(sort(failure));
    }

    /** That it is away was said in other words: the connection is lost. */
    synchronized void lost() {
        told.add(AWAY);
    }

    /** The outage is over. */
    synchronized void clear() {
        told.clear();
    }

    private static String sort(Failure failure) {
        if (failure.refusal() != null) {
            return failure.refusal().code();
        }
        Throwable cause = failure.getCause();
        if (cause instanceof SSLException || cause instanceof GeneralSecurityException) {
            return "not trusted";
        }
        if (cause instanceof FileSystemException) {
            return "a file";
        }
        if (cause instanceof NotGreetedException) {
            return "not greeted";
        }
        return cause instanceof RuntimeException ? cause.getClass().getName() : AWAY;
    }
}
