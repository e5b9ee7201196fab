"""Σ min(p, q) of the trained draft of SmolLM2 and of untrained drafts, on texts that it was not trained on.

The texts are every 16th that SmolLM2 wrote for ``make draft``, which leaves them out of the training, without
their first 15 tokens.  Both models are in float32.

Run: ``OMP_NUM_THREADS=1 PYTHONPATH=. python benchmarks/draft_acceptance.py --work build/draft --out FILE``.
"""

import time
from pathlib import Path
from typing import Any

import click
import torch
from safetensors.torch import load_file
from timing import machine, write

from spectheory.models import quiet_loading
from spectheory.models.derived_drafts import first_layers, last_tokens
from spectheory.models.loading import find_model
from spectheory.models.trained_drafts import TRAINED_DRAFTS, trained_draft

HELD_OUT, FIRST, DOMAINS = 16, 15, ("prose", "chat", "code")


@click.command()
@click.option("--work", type=click.Path(path_type=Path), default=Path("build/draft"), help="Of make draft.")
@click.option("--texts", default=3, help="Texts of every domain.")
@click.option("--out", type=click.Path(path_type=Path), help="Where to write the numbers as JSON.")
def main(work: Path, texts: int, out: Path | None) -> None:
    """Print a line per draft and domain."""
    quiet_loading()
    torch.set_num_threads(1)
    target = find_model("target", "smollm2").model(torch.device("cpu"), torch.float32)
    drafts: dict[str, Any] = {
        name: trained_draft(target, known.folder) for name, known in TRAINED_DRAFTS.items()
    }
    drafts |= {f"target:{count}-layers": first_layers(target, count) for count in (15, 24, 26)}
    drafts |= {f"target:last-{width}": last_tokens(target, width) for width in (2, 4)}
    rows, start = [], time.process_time()
    with torch.inference_mode():
        for domain in DOMAINS:
            shards = [
                load_file(path)["tokens"][::HELD_OUT] for path in sorted(work.glob(f"*-{domain}.safetensors"))
            ]
            tokens = torch.cat(shards)[:texts].long()
            target_rows = target(input_ids=tokens).logits.softmax(-1)
            for name, draft in drafts.items():
                rows_of_draft = draft(input_ids=tokens).logits.softmax(-1)
                agreement = torch.minimum(target_rows, rows_of_draft).sum(-1)[:, FIRST:].mean().item()
                rows.append({"draft": name, "domain": domain, "agreement": round(agreement, 4)})
                click.echo(rows[-1])
    seconds = round(time.process_time() - start)
    write(out, {"texts": texts, "machine": machine(), "cpu_seconds": seconds, "rows": rows})


if __name__ == "__main__":
    main()
