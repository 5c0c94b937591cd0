package io.rlmm.kafka.link;

import io.rlmm.kafka.wire.Failure;
import io.rlmm.kafka.wire.Hello;
import io.rlmm.kafka.wire.MalformedException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import javax.net.ssl.SSLException;

/** Makes a connection and sends the broker's identity, within a time. */
public final class Dialler {
    private final Address address;
    private final TlsFiles tls;
    private final Path tokenFile;
    private final boolean sendsPlaintextToken;
    private final Hello.Caller caller;
    private final int timeoutMs;
    private Transport current;
    private boolean isClosed = false;

    /** TLS and the file of a token may be null: there is none. */
    public Dialler(
            Address address, TlsFiles tls, Path tokenFile, boolean sendsPlaintextToken, Hello.Caller caller,
            int timeoutMs) {
        this.address = address;
        this.tls = tls;
        this.tokenFile = tokenFile;
        this.sendsPlaintextToken = sendsPlaintextToken;
        this.caller = caller;
        this.timeoutMs = timeoutMs;
    }

    /** A connection that was greeted. */
    Connection dial(Timer timer) throws IOException, GeneralSecurityException, MalformedException, Failure {
        Transport transport = new Transport();
        synchronized (this) {
            if (isClosed) {
                throw new IOException("closed");
            }
            current = transport;
        }
        Runnable cancel = timer.after(timeoutMs, transport::close);
        boolean isDone = false;
        try {
            transport.open(address, tls, timeoutMs);
            if (tokenFile != null && !sendsPlaintextToken && !transport.isPrivate()) {
                throw new SSLException("the token is not sent to " + address + " without TLS");
            }
            Connection connection = new Connection(transport);
            greet(connection, token());
            isDone = true;
            return connection;
        } finally {
            cancel.run();
            if (!isDone) {
                transport.close();
            }
        }
    }

    private void greet(Connection connection, String token) throws IOException, MalformedException, Failure {
        try {
            connection.greet(caller, token);
        } catch (SSLException told) {
            throw told;
        } catch (IOException untold) {
            throw new NotGreetedException(tls != null, untold);
        }
    }

    /** Read anew each time: tokens are replaced while brokers run. */
    private String token() throws IOException {
        return tokenFile == null ? null : Files.readString(tokenFile).strip();
    }

    /** Gives up the connection that is being dialled, and every later one. */
    synchronized void close() {
        isClosed = true;
        if (current != null) {
            current.close();
        }
    }

    @Override
    public String toString() {
        return address.toString();
    }
}
