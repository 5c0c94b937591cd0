"""`python -m rlmm`: the same as the command `rlmm`."""

from rlmm.cli.main import main

if __name__ == "__main__":
    main()
