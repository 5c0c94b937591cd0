package io.rlmm.kafka.link;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.security.GeneralSecurityException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;

/**
 * Bytes in, bytes out, and an end that may come from any thread.
 *
 * <p>Reading and writing block, so only threads of ours may do it: a thread of the broker that is
 * interrupted in the middle would close the channel for all callers.
 */
final class Transport implements Closeable {
    private Closeable bottom;
    private boolean isClosed;
    private boolean isPrivate;
    private InputStream in;
    private OutputStream out;

    InputStream in() {
        return in;
    }

    OutputStream out() {
        return out;
    }

    /** Whether nobody between can read it: it is encrypted, or ends within this machine. */
    boolean isPrivate() {
        return isPrivate;
    }

    /** Opens it; <code>close</code> ends this as well, from another thread. */
    void open(Address address, TlsFiles tls, int timeoutMs) throws IOException, GeneralSecurityException {
        if (address instanceof Address.Unix unix) {
            SocketChannel channel = held(SocketChannel.open(StandardProtocolFamily.UNIX));
            channel.connect(UnixDomainSocketAddress.of(unix.path()));
            isPrivate = true;
            in = ChannelStreams.in(channel);
            out = ChannelStreams.out(channel);
            return;
        }
        Address.Tcp tcp = (Address.Tcp) address;
        Socket socket = dialled(tcp, timeoutMs);
        isPrivate = tls != null || socket.getInetAddress().isLoopbackAddress();
        if (tls != null) {
            socket = encrypted(socket, tcp, tls);
        }
        in = socket.getInputStream();
        out = socket.getOutputStream();
    }

    private Socket dialled(Address.Tcp tcp, int timeoutMs) throws IOException {
        IOException failure = null;
        InetAddress[] addresses = InetAddress.getAllByName(tcp.host());
        // One that swallows everything must leave time for the others.
        int eachMs = Math.max(1, timeoutMs / Math.max(1, addresses.length));
        for (InetAddress address : addresses) {
            Socket socket = held(new Socket());
            try {
                socket.setTcpNoDelay(true);
                socket.setKeepAlive(true);
                socket.connect(new InetSocketAddress(address, tcp.port()), eachMs);
                return socket;
            } catch (IOException error) {
                socket.close();
                failure = error;
            }
        }
        throw failure == null ? new IOException("no address of " + tcp.host() + " is known") : failure;
    }

    private static Socket encrypted(Socket socket, Address.Tcp tcp, TlsFiles tls)
            throws IOException, GeneralSecurityException {
        String name = tls.serverName() == null ? tcp.host() : tls.serverName();
        SSLSocket secure = (SSLSocket) tls.sockets().createSocket(socket, name, tcp.port(), true);
        SSLParameters parameters = secure.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("HTTPS");
        secure.setSSLParameters(parameters);
        secure.startHandshake();
        return secure;
    }

    private synchronized <T extends Closeable> T held(T opened) throws IOException {
        if (isClosed) {
            opened.close();
            throw new IOException("given up");
        }
        bottom = opened;
        return opened;
    }

    /**
     * Hangs up at once. What lies below TLS is closed, since a polite farewell would wait for a
     * writer that is stuck.
     */
    @Override
    public synchronized void close() {
        isClosed = true;
        if (bottom != null) {
            try {
                bottom.close();
            } catch (IOException error) {
                // It is over, whatever it says.
            }
        }
    }
}
