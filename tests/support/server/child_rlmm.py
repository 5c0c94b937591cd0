"""`rlmm` that ends when its parent closes its standard input."""

import os
import runpy
import sys
import threading


def die_with_the_holder() -> None:
    os.read(0, 1)
    os.kill(os.getpid(), 9)


if __name__ == "__main__":
    threading.Thread(target=die_with_the_holder, daemon=True).start()
    sys.argv[0] = "rlmm"
    runpy.run_module("rlmm", run_name="__main__")
