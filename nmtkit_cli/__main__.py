"""Run the command line as `python -m nmtkit_cli`."""

from nmtkit_cli.main import main

main()
