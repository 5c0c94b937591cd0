"""
Asks `/livez` of the service in the same container; exit code 0 when it is alive, else 1.

`HEALTH_URL` names another address: `https://127.0.0.1:7405/livez` where HTTP is encrypted. The
certificate is not looked at: who answers on this machine's own address is this container.
"""

import http.client
import os
import ssl
import sys
import urllib.error
import urllib.request

URL = os.environ.get("HEALTH_URL", "http://127.0.0.1:7405/livez")
TIMEOUT_S = 4


def main() -> int:
    """Ask once."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    # No proxy of the environment stands between a container and itself.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with opener.open(URL, timeout=TIMEOUT_S) as answer:
            return 0 if answer.status == http.client.OK else 1
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = error.read(500).decode() if isinstance(error, urllib.error.HTTPError) else error
        sys.stderr.write(f"{URL}: {reason}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
