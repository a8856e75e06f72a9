"""`python -m oscc` is the command line."""

import sys

from oscc.cli.main import main

sys.exit(main())
