package io.rlmm.kafka.link;

import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;

/**
 * What TLS is made of. Read anew for each connection: certificates are replaced while brokers run.
 *
 * @param ca whom to trust; null: whom the JVM trusts
 * @param certificate the chain that names this broker; null: none is shown
 * @param key of the certificate; null: it stands in the same file
 * @param serverName the name in the service's certificate, where that is not the host; may be null
 */
public record TlsFiles(Path ca, Path certificate, Path key, String serverName) {
    private static final char[] NO_PASSWORD = new char[0];

    /** Sockets that trust and show what the files say now. */
    public SSLSocketFactory sockets() throws IOException, GeneralSecurityException {
        SSLContext context = SSLContext.getInstance("TLS");
        TrustManagerFactory trusted = null;
        if (ca != null) {
            KeyStore store = emptyStore();
            int number = 0;
            for (Certificate one : Pem.certificates(ca)) {
                store.setCertificateEntry("ca-" + number++, one);
            }
            trusted = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trusted.init(store);
        }
        KeyManagerFactory shown = null;
        if (certificate != null) {
            KeyStore store = emptyStore();
            Certificate[] chain = Pem.certificates(certificate).toArray(Certificate[]::new);
            store.setKeyEntry("own", Pem.privateKey(key == null ? certificate : key), NO_PASSWORD, chain);
            shown = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            shown.init(store, NO_PASSWORD);
        }
        context.init(
            shown == null ? null : shown.getKeyManagers(), trusted == null ? null : trusted.getTrustManagers(), null);
        return context.getSocketFactory();
    }

    private static KeyStore emptyStore() throws IOException, GeneralSecurityException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }
}
