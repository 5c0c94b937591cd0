"""
The command `rlmm` as spark-submit takes it: a file whose name ends in `.py`.

    spark-submit --master spark://master:7077 --archives env.tar.gz#env submit.py tier run ...

`rlmm/__main__.py` is no substitute: its folder would hide modules of the standard library.
"""

from __future__ import annotations

from rlmm.cli.main import main

if __name__ == "__main__":
    main()
