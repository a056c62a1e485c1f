"""`python -m dali_l3.cli`."""

from . import main

main()
