"""Audits: specimens are caught, lossless samplers pass, and the numbers behind a verdict are right."""

import _thread
import importlib.util
import socket
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from audit_support import SAID_OF
from audits.registry import load_subject
from audits.specimens.samplers import LOSSLESS_SPECIMENS, SPECIMENS, token_verification
from deep import first_is_quick
from later import Later
from spectheory import audit, certify, instances
from spectheory.auditing.following.intercept import GLOBAL_SEED
from spectheory.auditing.rounds.battery import audit_pairs, pairs_of_several_paths, random_dyadic
from spectheory.auditing.rounds.rounding import rounding_bound
from spectheory.auditing.subjects.relaxations import deferred_rejection, synthetic_acceptance
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.verdicts.audit_certificate import RELAXATION
from spectheory.auditing.verdicts.cases import AuditCase
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED
from spectheory.pairs.pair import ModelPair

transformers_utils = Later("transformers.generation.utils")

THIRDS = {"thirds": instances.two_token(1)}
SLOW = {"product_of_uniforms": {"thirds": instances.two_token(2)}, "coins_of_101_values": THIRDS}
"""Pairs for samplers whose laws take many runs."""
FEW = {"two residual tokens": audit_pairs()["two residual tokens"]}
BOUNDARY = {"forbidden token": instances.bernoulli("1/2", "1")}
"""The only pair that is needed where a forbidden token is all that is found."""


@first_is_quick("name", SPECIMENS, quick=2)
def test_every_specimen_is_caught(name: str) -> None:
    """With its mechanism, where that is more than a wrong law; what is rarer than rounding is no defect."""
    sampler, signature = SPECIMENS[name]
    pairs = BOUNDARY if name == "boundary_comparison" else SLOW.get(name)
    found = audit(Shipped(sampler, signature), pairs, stop_at_first=True)
    assert found.verdict == (LOSSLESS if name == "boundary_comparison" else NOT_LOSSLESS)
    assert SAID_OF.get(name, "its law is not the target's on ") in " ".join(found.reasons + found.boundary)
    assert found.is_defective is not found.is_lossless


@pytest.mark.parametrize("pairs", [FEW, pytest.param(None, marks=pytest.mark.deep)], ids=["few", "all"])
@first_is_quick("name", LOSSLESS_SPECIMENS)
def test_partner_no_lossless_sampler_is(name: str, pairs: dict[str, ModelPair] | None) -> None:
    """Nor one whose rounding is the only thing to be seen."""
    found = audit(Shipped(*LOSSLESS_SPECIMENS[name]), pairs)
    assert (found.verdict, found.reasons, found.counterexample) == (LOSSLESS, (), None)
    assert found.is_lossless
    several = {**pairs_of_several_paths(2), **pairs_of_several_paths(3)}
    assert {case.pair for case in found.cases} == {*(pairs or {**audit_pairs(), **several})}
    assert {case.num_drafts for case in found.cases} == {1, 2, 3}
    assert 0 < found.total_variation < Fraction(1, 10**6)


def exact(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    return [int(torch.multinomial(target_rows[0, 0], 1, generator=generator))]


def test_exactly_lossless() -> None:
    found = audit(exact, {"dyadic": random_dyadic(1, 2, 2)})
    assert (found.verdict, found.total_variation) == (LOSSLESS, 0)


def normal_coins(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    return [int(torch.randn(1) < 0)]


def calls_home(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    with socket.create_connection(("127.0.0.1", 9)):
        return [0]


def half_of_a_product(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    """Lossless in distribution only if P(u v < t) is exactly 1/3: boxes cannot say."""
    u = torch.rand(2, generator=generator)
    return [0 if bool((u[0] * u[1]) < 0.0985) else 1]


@pytest.mark.parametrize(
    ("sampler", "says"),
    [
        (calls_home, "files, networks and processes are not the sampler's"),
        (half_of_a_product, "the total variation on thirds is known to"),
    ],
)
def test_what_is_not_decided_says_why(sampler: Any, says: str) -> None:
    found = audit(sampler, {"thirds": instances.two_token(1)})
    assert (found.verdict, found.is_lossless) == (UNDECIDED, False)
    assert says in found.headline()


def test_normal_numbers_are_probed() -> None:
    """Half of them are negative; the target's coin is one third."""
    found = audit(normal_coins, {"thirds": instances.two_token(1)}, drafts=1, within=0.05)
    assert (found.verdict, found.basis) == (NOT_LOSSLESS, "probed")
    assert "aten.randn" in found.ways[0]
    half = {"half": ModelPair.context_free_pair(["1/2", "1/2"], ["1/4", "3/4"], 1)}
    assert audit(normal_coins, half, drafts=1, within=0.05).is_lossless


def noise_of_all_tokens(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    """One exponential number for all tokens: the likeliest one always wins."""
    noise = torch.empty(1).exponential_(generator=generator).expand(target_rows.shape[-1])
    return [int((target_rows[0, 0] / noise).argmax())]


def test_noise_that_all_tokens_share_decides_nothing() -> None:
    found = audit(noise_of_all_tokens, {"quarters": instances.bernoulli("1/2", "1/4")}, drafts=(1,))
    assert (found.is_defective, found.total_variation) == (True, Fraction(1, 4))


def by_a_sequence_of_its_own() -> Any:
    """Token verification with coins of its own arithmetic, whose state it keeps."""
    state = [1]

    def sampler(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
        state[0] = state[0] * 1103515245 + 12345 & 0x7FFFFFFF
        return [0 if state[0] / 2**31 < float(target_rows[0, 0, 0]) else 1]

    return sampler


def by_the_number_of_the_call() -> Any:
    """Exactly lossless, but for every fourth call."""
    calls = count(1)

    def sampler(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
        token = int(torch.multinomial(target_rows[0, 0], 1, generator=generator))
        return [token if next(calls) % 4 else 0]

    return sampler


def with_a_generator_that_is_kept(prob: float | None = None) -> Any:
    """Made in the first call, whose random numbers are real.  Lossless, unless ``prob`` is another coin."""
    kept: list[Any] = []

    def sampler(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
        if not kept:
            kept.append(np.random.default_rng(7))
        return [int(kept[0].random() >= (prob or float(target_rows[0, 0, 0])))]

    return sampler


def with_a_kept_generator_and_a_wrong_coin() -> Any:
    return with_a_generator_that_is_kept(0.5)


def with_a_generator_of_torch() -> Any:
    """Lossless: the numbers of torch are answered, whatever seed a sampler gives them, if it changes."""
    kept = torch.Generator()

    def sampler(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
        kept.manual_seed(time.time_ns())
        return [int(torch.multinomial(target_rows[0, 0], 1, generator=kept))]

    return sampler


@first_is_quick(
    ("make", "says", "verdict"),
    [
        (by_a_sequence_of_its_own, "randomness that is not replaced", UNDECIDED),
        (by_the_number_of_the_call, "", NOT_LOSSLESS),
        (with_a_generator_that_is_kept, "randomness that is not replaced", UNDECIDED),
        (with_a_kept_generator_and_a_wrong_coin, "randomness that is not replaced", NOT_LOSSLESS),
    ],
    ids=lambda made: getattr(made, "__name__", ""),
    quick=2,
)
def test_a_law_that_other_numbers_decide_is_drawn(make: Any, says: str, verdict: str) -> None:
    """A law that was found with hidden numbers counts for nothing; two calls in a row may show a state."""
    found = audit(make(), {"thirds": instances.two_token(1)}, drafts=1, within=0.002)
    assert (found.verdict, found.counterexample) == (verdict, None)
    assert says in "".join(found.ways)
    assert all(case.basis == "drawn" for case in found.cases if says)


def test_partner_a_generator_whose_numbers_are_answered() -> None:
    found = audit(with_a_generator_of_torch(), FEW)
    assert (found.verdict, found.findings) == (LOSSLESS, ())


def test_transformers() -> None:
    """Token verification up to float32, but for a coin of 0; the ensemble has the law that it states."""
    names = ("forbidden token", "disjoint supports", "tiny probabilities")
    found = audit("transformers", {name: audit_pairs()[name] for name in names})
    assert found.forbidden == Fraction(1, 2**24)  # of disjoint supports; 2^-25 where half of the drafts can
    (rare,) = [case for case in found.cases if case.pair == "forbidden token"]
    assert rare.forbidden == Fraction(1, 2**25)
    assert found.total_variation < Fraction(1, 10**6)
    assert (found.verdict, found.reasons, len(found.boundary)) == (LOSSLESS, (), 1)
    assert found.findings == (("boundary", found.boundary[0]),)
    assert ["boundary", found.boundary[0]] in found.tables()[0].texts()
    assert found.headline() == (
        "transformers: lossless on 3 cases in float32, (V, L, K) = (2, 1-2, 1), (4, 1, 1)"
    )
    pairs = THIRDS | {"dyadic": random_dyadic(3, 3, 1)}
    ensemble = audit("transformers-ensemble", pairs)
    assert (ensemble.verdict, ensemble.relaxation) == (
        RELAXATION,
        "tokens at drafted positions have the law 1/2 p + 1/2 q",
    )


def test_partner_the_ensemble_is_not_lossless() -> None:
    """Judged against the target itself."""
    sampler = load_subject("transformers-ensemble")
    found = audit(Shipped(sampler.sampler, "speculative_sampling"), {"thirds": instances.two_token(1)})
    assert found.verdict == NOT_LOSSLESS
    assert abs(found.total_variation - Fraction(1, 6)) < Fraction(1, 10**6)


def at_given_rates(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    """Accepts with 3/4, then with 1/2, whatever the rows are; the token after that is always the first."""
    accepted = 0
    while accepted < paths.shape[1] and torch.rand((), generator=generator) < (0.75, 0.5)[accepted]:
        accepted += 1
    return [*paths[0, :accepted].tolist(), 0]


def test_a_verifier_whose_law_is_stated() -> None:
    """Rates say nothing of the correction token; the law of FLy does, and of the length."""
    pairs = {"thirds": instances.two_token(2)}
    for rates, verdict in (("3/4 1/2", RELAXATION), ("3/4 1/4", NOT_LOSSLESS)):
        relaxation = synthetic_acceptance(tuple(map(Fraction, rates.split())))
        found = audit(Shipped(at_given_rates, "sampler", relaxation=relaxation), pairs)
        assert (found.verdict, found.counterexample) == (verdict, None)
        assert (found.total_variation == 0) is (verdict == RELAXATION)
    for threshold, verdict in ((2.0, RELAXATION), (0.5, NOT_LOSSLESS)):
        stated = Shipped(token_verification, "sampler", relaxation=deferred_rejection(1, threshold, 3))
        assert audit(stated, pairs).verdict == verdict


def test_a_mutant_of_an_audited_file_is_caught(tmp_path: Path) -> None:
    """One comparison flipped in a copy of the file; the copy itself has the law of the original."""
    text = Path(transformers_utils.__file__).read_text(encoding="utf-8")
    flipped = text.replace("is_accepted = r_i <= probability_ratio", "is_accepted = r_i >= probability_ratio")
    assert flipped != text
    pairs = {"dyadic": random_dyadic(1, 2, 1)}
    verdicts = []
    for number, content in enumerate((text, flipped)):
        path = tmp_path / f"copy_{number}.py"
        path.write_text(content, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(f"transformers.generation.copy_{number}", path)
        assert spec is not None and spec.loader is not None  # noqa: PT018
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        verdicts.append(audit(Shipped(module._speculative_sampling, "speculative_sampling"), pairs).verdict)
    assert verdicts == [LOSSLESS, NOT_LOSSLESS]


def test_the_counterexample_is_no_rounding() -> None:
    """The first token has the target's law up to float32, and the second one is always the likeliest."""

    def sampler(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
        first = int(torch.multinomial(target[0, 0], 1, generator=generator))
        return [first, int(target[0, 1].argmax())] if first == int(paths[0, 0]) else [first]

    pairs = {"two residual tokens": instances.two_residual_tokens(1)}
    found = audit(sampler, pairs, signature="sampler", drafts=1).counterexample
    assert found is not None
    assert found.law is not None
    assert any(found.law.prefix_law(1) != pairs["two residual tokens"].target_path_probs(1))  # rounding
    assert found.counterexample is not None
    assert len(found.counterexample.path) == 2


def test_the_counterexample_is_on_the_pair_of_the_headline() -> None:
    """Not on the first pair where the law is wrong."""
    sampler, signature = SPECIMENS["one_sided_temperature"]
    pairs = {"near": random_dyadic(1, 2, 2)}
    found = audit(Shipped(sampler, signature), {**pairs, "far": random_dyadic(3, 3, 2)})
    assert [case.is_wrong for case in found.cases] == [True, True]
    assert "on far," in found.reasons[0]
    assert found.counterexample is not None
    assert (found.counterexample.vocab_size, found.counterexample.draft_length) == (3, 2)
    assert found.counterexample.total_variation == found.total_variation


@pytest.mark.deep
def test_what_is_undecided_is_said_as_a_bound() -> None:
    """No counterexample tells of a law that is not known; a sampler whose law is known has one."""
    open_law = audit(Shipped(*SPECIMENS["product_of_uniforms"]), SLOW["product_of_uniforms"])
    assert open_law.cases[0].undecided > 0
    assert open_law.verdict == NOT_LOSSLESS
    assert open_law.counterexample is None
    assert any("it earns at least" in reason for reason in open_law.reasons)
    known = audit(Shipped(*SPECIMENS["uncapped_joint_ratio"]), SLOW["product_of_uniforms"])
    assert known.counterexample is not None
    assert not any("at least" in reason for reason in known.reasons)


def test_the_second_proof_needs_no_comparison_of_laws() -> None:
    """Above the optimum by more than rounding; a sampler below it has no such proof."""
    pairs = {"thirds": instances.two_token(2)}
    (above,) = audit(Shipped(*SPECIMENS["uncapped_joint_ratio"]), pairs).cases
    assert above.is_above_the_optimum
    assert above.optimum == certify("block", pairs["thirds"]).optimum == Fraction(20, 9)
    (below,) = audit(Shipped(*SPECIMENS["next_position_correction"]), pairs).cases
    assert not below.is_above_the_optimum


def case(total_variation: Fraction, undecided: Fraction) -> AuditCase:
    zero = Fraction(0)
    return AuditCase(
        "pair", 2, 1, 1, "", total_variation, undecided, Fraction(1, 100), zero, zero, Fraction(1), None, None
    )


def test_what_is_undecided_is_never_held_against_a_sampler() -> None:
    """Wrong: whatever the undecided runs do.  Open: if they can make the difference."""
    assert case(Fraction(1, 2), Fraction(1, 4)).is_wrong
    assert not case(Fraction(1, 4), Fraction(1, 4)).is_wrong
    assert case(Fraction(1, 4), Fraction(1, 4)).is_open
    assert not case(Fraction(1, 200), Fraction(1, 400)).is_open


def test_the_bound_grows_with_what_is_rounded() -> None:
    assert rounding_bound(instances.two_token(2)) > rounding_bound(instances.two_token(1))
    tiny = rounding_bound(instances.tiny_probabilities(200, 2, 2))
    assert Fraction(1, 10**4) > tiny > rounding_bound(instances.two_token(2))


def test_results_print_and_refuse_floats() -> None:
    pairs = {"thirds": instances.two_token(2)}
    found = audit(token_verification, pairs, drafts=[1])
    document = found.to_document()
    assert document["verdict"] == LOSSLESS
    assert document["cases"][0]["pair"] == "thirds"
    assert document["provenance"]["file"] == "audits/specimens/samplers.py"
    assert found.headline() == ("token_verification: lossless on 1 case in float32, (V, L, K) = (2, 2, 1)")
    assert document["seeds"] == [
        f"torch's global generator: {GLOBAL_SEED}, and multiples of 1000003 more where a run is repeated",
        "the generator that is handed over: 1, and multiples of 1000003 more where a run is repeated",
    ]
    assert document["probes"][0] == "inside of every cell of a comparison, at 0.382 and 0.764 of it"
    repeated, runs = (int(word) for word in document["probes"][1].split() if word.isdigit())
    assert 4 <= repeated <= runs / 2  # the first run of every drafted path
    assert document["probes"][2] == "16 runs of two calls in a row"
    assert ["scope", "1 case, (V, L, K) = (2, 2, 1); 1 independent path"] in found.tables()[0].texts()
    with pytest.raises(InvalidInputError, match="write the rows of 'floats' as texts, such as \"1/3\""):
        audit(token_verification, {"floats": pairs["thirds"].to_float()})


def test_a_sampler_without_tokens_has_a_defect() -> None:
    """It ends without a result, and raises nothing."""
    found = audit(lambda *call: [], {"thirds": instances.two_token(1)}, signature="sampler", drafts=1)
    assert found.is_defective
    assert "it makes no valid output with probability 1 on thirds: " in found.reasons[0]
    assert "returned the tokens []; expected 1 to 2 of them" in found.reasons[0]


def test_pairs_have_names() -> None:
    with pytest.raises(InvalidInputError, match="a mapping of names to pairs, got list"):
        audit(token_verification, [instances.two_token(1)])  # type: ignore[arg-type]


def _asks_for_the_seed(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    first = [0] if generator.initial_seed() > 1000 or torch.initial_seed() > 100_000 else None
    return first or token_verification(paths, target_rows, draft_rows, generator)


def _drawn_in_a_raw_thread(**source: Any) -> float:
    done, found = threading.Lock(), []
    done.acquire()
    _thread.start_new_thread(lambda: (found.append(float(torch.rand((), **source))), done.release()), ())
    assert done.acquire(timeout=60)
    return found[0]


def _draws_in_a_raw_thread(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    is_wrong = 0.5 < _drawn_in_a_raw_thread() < 0.85
    return [0] if is_wrong else token_verification(paths, target_rows, draft_rows, generator)


def _draws_from_its_generator_in_a_raw_thread(
    paths: Any, target_rows: Any, draft_rows: Any, generator: Any
) -> list[int]:
    is_wrong = 0.5 < _drawn_in_a_raw_thread(generator=generator) < 0.85
    return [0] if is_wrong else token_verification(paths, target_rows, draft_rows, generator)


@torch.jit.script
def _scripted_coin():  # type: ignore[no-untyped-def]
    return torch.rand(1) < 0.5


def _runs_torchscript(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    if _scripted_coin():
        return [0]
    return token_verification(paths, target_rows, draft_rows, generator)


def _forks_the_global_generator(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    with torch.random.fork_rng(devices=[]):
        torch.rand(())
    torch.rand(0), torch.randint(0, 9, (0,)), torch.bernoulli(torch.zeros(0))
    torch.empty(0, 3).exponential_(generator=generator)
    return token_verification(paths, target_rows, draft_rows, generator)


@pytest.mark.parametrize("length", [1, 2])
@first_is_quick(
    ("sampler", "says", "basis"),
    [
        (_asks_for_the_seed, "keeps state between calls: it gave", "probed"),
        (_draws_in_a_raw_thread, "where we do not see it", "drawn"),
        (_draws_from_its_generator_in_a_raw_thread, "randomness that is not replaced", "drawn"),
        (_runs_torchscript, "runs TorchScript, which is not followed", "probed"),
        (_forks_the_global_generator, "", "followed"),
    ],
)
def test_what_a_run_does_not_follow_is_called(
    sampler: Callable[..., list[int]], says: str, basis: str, length: int
) -> None:
    """Seeds, draws in other threads and in TorchScript; the partner forks a generator and draws nothing."""
    found = audit(sampler, {"thirds": instances.two_token(length)}, drafts=[1], within=0.02)
    assert (found.verdict, found.basis) == ((NOT_LOSSLESS, basis) if says else (LOSSLESS, "followed"))
    assert says in "".join(found.ways)


def test_a_trace_shows_every_decision_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    """With the line, the bound and the probability; without ``trace`` there is none."""

    def accepts(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
        if torch.rand((), generator=generator) < 0.25:
            return [0]
        return [int(torch.multinomial(target_rows[0, 0], 1, generator=generator))]

    audit(accepts, THIRDS, drafts=1)
    assert capsys.readouterr().err == ""
    audit(accepts, THIRDS, drafts=1, trace=True)
    first, decision, end = capsys.readouterr().err.splitlines()
    line = accepts.__code__.co_firstlineno + 1
    assert first.startswith("one run of accepts with the drafts [[")
    assert decision == f"  {__file__}, line {line}: below 0.25, probability 1/4 = 0.25"
    assert end == "  tokens [0]"
