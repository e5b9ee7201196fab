"""Silence model libraries.  This file imports nothing heavy, so that it can run before they are imported."""

import os
import sys


def quiet_loading() -> None:
    """Turn off progress bars and notices of model libraries, unless the user has set their variables."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if "transformers" in sys.modules:  # already imported, so it no longer reads the environment
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
