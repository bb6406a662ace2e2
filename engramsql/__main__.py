"""``python -m engramsql``: the command line."""

from __future__ import annotations

import sys

from engramsql.cli import main

sys.exit(main())
