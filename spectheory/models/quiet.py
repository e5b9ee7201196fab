"""Silence while models are loaded; nothing heavy is imported here, so that it can come before everything."""

import os
import sys


def quiet_loading() -> None:
    """Keep the progress bars and notices of model libraries off stderr (unless the user set them)."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if "transformers" in sys.modules:  # imported before: it has read the environment already
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
