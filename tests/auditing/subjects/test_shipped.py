"""Shipped samplers as verifiers: exact laws, provenance, runs without an output."""

import hashlib
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import torch

from later import Later
from spectheory import audit, instances, output_law
from spectheory.auditing.subjects.provenance import Provenance
from spectheory.auditing.subjects.shipped import Shipped

transformers_utils = Later("transformers.generation.utils")


def test_transformers_has_the_law_of_token_verification() -> None:
    """Mass for mass within float32; a second route draws from the function itself."""
    pair = instances.two_residual_tokens(1)
    found = output_law(Shipped(transformers_utils._speculative_sampling, "speculative_sampling"), pair)
    known = output_law("token", pair)
    for ours, theirs in zip(known.masses, found.masses, strict=True):
        assert max(abs(ours - theirs)) < 1e-6
    assert 0 < found.total_variation < 1e-6
    found = audit(drawn, {"residual": pair}, signature="numpy", drafts=1, within=0.02)
    assert (found.verdict, found.basis) == ("lossless", "probed")


def drawn(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    """transformers' function, called with arrays of numpy, after a number that no run follows."""
    torch.rand(1).numpy()
    ids = torch.tensor(paths[:1])
    logits = [torch.tensor(rows[:1], dtype=torch.float32).log() for rows in (draft_rows, target_rows)]
    tokens, _ = transformers_utils._speculative_sampling(ids, logits[0], ids.shape[1], logits[1])
    return tokens[0].tolist()


def test_provenance_says_which_bytes_were_run(tmp_path: Path) -> None:
    found = Provenance.of(transformers_utils._speculative_sampling)
    content = Path(transformers_utils.__file__).read_bytes()
    assert found.sha256 == hashlib.sha256(content).hexdigest()
    assert (found.package, found.file) == ("transformers", "transformers/generation/utils.py")
    own = Provenance.of(drawn)
    assert (own.package, own.version, Path(own.file).name) == ("", "", "test_shipped.py")
    file = tmp_path / "ot.py"  # with the name of an installed package, POT
    file.write_text("def sampler():\n    pass\n")
    ours: dict[str, Any] = {"__name__": "ot"}
    exec(compile(file.read_text(), file, "exec"), ours)
    found = Provenance.of(ours["sampler"])
    assert (found.package, found.version, found.file) == ("", "", "ot.py")
    assert Provenance.of(len).sha256 == ""
    file = tmp_path / "elsewhere.py"  # a file that is loaded from a folder that is not imported from
    file.write_text("\ndef sampler():\n    pass\n")
    names: dict[str, Any] = {"__name__": "elsewhere"}
    exec(compile(file.read_text(), file, "exec"), names)
    assert (Provenance.of(names["sampler"]).file, Provenance.of(names["sampler"]).line) == ("elsewhere.py", 2)


def divides_zero_by_zero(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    """Right where all goes well, but rejects a coin above 1/2 although the models are equal."""
    if torch.rand((), generator=generator) < 0.5:
        return [int(paths[0, 0]), int(torch.multinomial(target_rows[0, 1], 1))]
    residual = (target_rows[0, 0] - draft_rows[0, 0]).clamp(min=0)
    return [int(torch.multinomial(residual / residual.sum(), 1))]


def test_a_draw_from_nothing_is_an_undefined_output() -> None:
    shipped = Shipped(divides_zero_by_zero, "sampler")
    law = output_law(shipped, instances.equal_models(1))
    assert law.undefined == Fraction(1, 2)
    assert law.total_variation == Fraction(1, 2)
    assert "multinomial" in min(shipped.journal.undefined)


def test_other_errors_are_one_line() -> None:
    def fails(*arguments: Any) -> Any:
        raise KeyError("row")

    found = audit(fails, {"two": instances.two_token(1)}, drafts=1)
    assert not found
    assert re.search(r"'fails' failed: KeyError: 'row' \(.*test_shipped.py, line \d+\)$", found.reasons[0])
