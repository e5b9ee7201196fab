"""The names of the face: as DESIGN has them, few in its modules, and all on one page."""

from importlib import import_module

from scripts import load

FACE = {
    "Certificate", "ModelPair", "Outcome", "OutputLaw", "Proof", "Verifier", "acceptance", "arrays", "audit",
    "certify", "certify_suite", "compare", "decode", "defects", "drafts", "from_loop", "from_sampler",
    "instances", "models", "optima", "optimum", "output_law", "plan", "prove", "simulate",
    "testing", "verifiers",
}  # fmt: skip
"""The names of the face."""
MOST_NAMES = {"spectheory.optima": 35, "spectheory.pairs.drafts": 14, "spectheory.models": 8}


def test_the_face_has_these_names() -> None:
    assert {*import_module("spectheory").__all__} == FACE
    for module, most in MOST_NAMES.items():
        assert len(import_module(module).__all__) <= most, (
            f"{module}: is the new name for users? see MOST_NAMES"
        )
    assert len(load("scripts", "names_page").names_of(import_module("spectheory.foundation.arrays"))) <= 30


def test_all_public_names_are_on_one_page() -> None:
    """With a sentence each; the page is that of the docstrings as they are."""
    script = load("scripts", "names_page")
    text = script.page()
    assert script.PAGE.read_text(encoding="utf-8") == text
    assert not [line for line in text.splitlines() if line.endswith("|  |")]
