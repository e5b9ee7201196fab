"""Whole decoding loops: functions that take models, and return a text or the tokens of one step.

We find the form in which a loop calls its models by trying.  The first tokens of the text then have a law,
which must be the target's.

A form may be wrong, and a loop right.  So we play a control: with the draft equal to the target, a loop that
verifies at all keeps or redraws the first token from the target, and the first token of its text has the law
of its row.  If it has not, we withdraw the form and try the next.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from fractions import Fraction
from io import StringIO
from typing import Any

import numpy as np
import torch

from spectheory.auditing.drawing.draw import draw_and_judge
from spectheory.auditing.subjects.asked import Numbers, Part, Question
from spectheory.auditing.subjects.drafting_rounds import DraftingRound, LookUpModel, Played
from spectheory.auditing.subjects.flattened_batch import flattened
from spectheory.auditing.subjects.loop_forms import PROMPT, PROMPTS, LoopForm, all_forms
from spectheory.auditing.subjects.provenance import Provenance
from spectheory.auditing.subjects.roles import StandInSelf, UnknownRoleError, arguments, bound, roles_of
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import (
    FLATTENED,
    GENERATE,
    LOOPS,
    ROUND,
    ROUND_BATCH,
)
from spectheory.auditing.subjects.table_models import TableModel, note_strange_texts, tokens_returned
from spectheory.auditing.subjects.table_tokenizer import TableTokenizer
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.pairs.contexts import Context
from spectheory.pairs.pair import ModelPair

TRIES = 12
"""We call the loop so often in each form.  A wrong form fails at once; a right one may fail now and then."""
GIVEN_UP = 3
"""A form in which the first 3 calls fail is wrong."""
ALL, SOME, NONE, STRANGE = "all", "some", "none", "strange"
"""Which calls of a loop in a form make a text."""
MAX_RUNS_OF_A_LOOP = 10_000
"""A run takes 4 to 8 ms.  A loop with one path of 2 drafts has 9 289 runs with 4 tokens, and 1 062 with 3."""
DRAWS, RISK = 400, 1e-6
"""Draws of a control, which sees a wrong first token at a total variation of about 0.2."""
CONTROL = ModelPair.from_contexts(
    {
        (): ("1/8", "5/8", "1/4"),
        (0,): ("1/2", "1/8", "3/8"),
        (1,): ("1/4", "1/4", "1/2"),
        (2,): ("3/8", "3/8", "1/4"),
    },
    {(): ("1/2", "1/4", "1/4")},
    1,
)
"""The pair on which we search the form; no two of its rows are alike."""


class ModelLoop(DraftingRound):
    """A function that takes a target and a draft model, and returns a text, or the tokens of one step.

    Args:
        function: the loop, or a method of a class.  We know the roles of its parameters by their names.
        signature: "generate" for a function that returns a text; "step" for the tokens of one step.
        name: by default the function's.
        options: further arguments of ``Shipped``.  ``max_runs`` is ``MAX_RUNS_OF_A_LOOP`` by default.

    Attributes:
        form: the form in which we call the loop.
    """

    kind = "sampler"
    reports_drafts = False
    prompt = PROMPT

    def __init__(
        self, function: Callable[..., Any], name: str | None = None, signature: str = GENERATE, **options: Any
    ) -> None:
        super().__init__(function, name, signature, **{"max_runs": MAX_RUNS_OF_A_LOOP, **options})
        self.is_text = signature == GENERATE
        self._form: LoopForm | None = None
        self.why_not: dict[str, int] = {}
        """The reasons why forms fail, in words, and how many texts models were asked about before."""
        self._withdrawn: dict[LoopForm, str] = {}
        """Forms whose controls failed, as ``of_one_law``, and what they drew, in words."""
        self._models: tuple[TableModel, ...] = ()

    @property
    def form(self) -> LoopForm:
        """The form, found at first use.

        Raises:
            NotEnumerableError: the loop fails in every form.
        """
        if self._form is None:
            self._form = self._found_form()
            called = f"called with {roles_of(self.sampler)}; {self._form.words}"
            self.note = "; ".join(filter(None, (called, self.note)))
            self.stand_ins = (*self.stand_ins, "tables of rows for its models")
        return self._form

    def prepared(self, pair: ModelPair) -> tuple[Shipped, ModelPair]:
        """As for a round.  The form is found before runs are followed."""
        _ = self.form
        return super().prepared(pair)

    def asked(self, question: Question) -> Iterator[Part]:
        """As for a round.  The form is found before numbers are handed."""
        _ = self.form
        return super().asked(question)

    def rounds(self, tape: Numbers, pair: ModelPair, times: int, *_: Any, **__: Any) -> list[list[Played]]:
        """Play the loop once, and present the judged tokens as one round."""
        form, length = self.form._replace(draft_length=pair.draft_length), pair.draft_length + 1
        target, draft = _tables(pair)
        size = pair.vocab_size
        ((tokens, models),) = self.in_a_row(
            tape, 1, lambda call: self._play(form, target, draft, size, length, call.generator)
        )
        note_strange_texts(self.journal, *models)
        text = self._judged_tokens(form, tokens, length, pair.vocab_size)
        drafted = (*text[:-1], *[0] * pair.draft_length)[: pair.draft_length]
        self.credited_path(np.array([drafted]), text, pair.vocab_size)
        return [[Played(drafted, _no_rows(pair), text)]]

    def _play(
        self,
        form: LoopForm,
        target: Callable[[Sequence[int]], list[float]],
        draft: Callable[[Sequence[int]], list[float]],
        vocab_size: int,
        length: int,
        generator: torch.Generator,
    ) -> tuple[list[int], tuple[TableModel, TableModel]]:
        """Call the loop once.  Return the tokens as they are, and the models."""
        self._models = models = tuple(TableModel(row, draft, vocab_size, form) for row in (target, draft))
        new = length + form.extra
        prompt = [token + form.shift for token in PROMPT]
        values = {
            "prompt": PROMPTS[form.prompt](prompt),
            "target": models[0],
            "draft": models[1],
            "new tokens": new,
            "total tokens": new + len(PROMPT),
            "draft length": form.draft_length,
            "generator": generator,
            "vocabulary": vocab_size + form.shift,
            "top-p": form.top_p,
            "tokenizer": TableTokenizer(vocab_size + form.shift),
            "device": torch.device("cpu"),
            **({} if self.declared is None else {"declared": self.declared.settings}),
        }
        function = bound(self.sampler, values)
        with redirect_stdout(StringIO()):
            returned = function(**arguments(function, values))
            return tokens_returned(returned), models  # type: ignore[return-value]

    def _judged_tokens(self, form: LoopForm, tokens: list[int], length: int, size: int) -> Context:
        start = len(PROMPT) if form.has_prompt else 0
        text = [token - form.shift for token in tokens[start : start + length]]
        is_short = len(text) < (length if self.is_text else 1)
        if is_short or not all(0 <= token < size for token in text):
            raise InvalidOutcomeError(
                f"{self.words} returned the tokens {tokens[start:]} after the prompt; we asked for {length}, "
                f"in {form.shift}..{size - 1 + form.shift}"
            )
        return tuple(text)

    # ------------------------------------------------------------------ the form

    def _found_form(self) -> LoopForm:
        """The first form in which all calls make a text, else one of its group in which some do.

        Raises:
            NotEnumerableError: there is none, or the controls of all forms fail.
        """
        for forms in all_forms(2):
            others: dict[str, list[LoopForm]] = {SOME: [], STRANGE: [], NONE: []}
            for form in forms:
                found, made = self._tried(form)
                if made == ALL:
                    if found.of_one_law not in self._withdrawn and self._control_holds(found):
                        return found
                else:
                    others[made].append(found)
            for found in (*filter(self._control_holds, others[SOME]), *others[STRANGE]):
                return found
        for form, drawn in self._withdrawn.items():
            raise NotEnumerableError(
                f"we cannot judge {self.words}: with the draft equal to the target its first token "
                f"has not the law of its row{drawn} (the form: {form.words})"
            )
        reasons = "; ".join(sorted(self.why_not, key=self.why_not.__getitem__, reverse=True)[:3])
        raise NotEnumerableError(f"we found no form in which {self.words} makes a text: {reasons}")

    def _tried(self, form: LoopForm) -> tuple[LoopForm, str]:
        """Call the loop in a form.

        Return the form with ``has_prompt``, and which calls make a text: ``ALL``, ``SOME``, ``NONE``, or
        ``STRANGE`` if a model is asked about a text that does not begin with the prompt.
        """
        target, draft = _tables(CONTROL)
        texts: list[list[int]] = []
        is_drafting = strange = 0
        for number in range(TRIES):
            self.check_time()
            torch.manual_seed(number)
            np.random.seed(number)  # noqa: NPY002
            try:
                generator = torch.Generator().manual_seed(number)
                tokens, models = self._play(form, target, draft, 3, 2, generator)
            except UnknownRoleError as error:
                raise NotEnumerableError(f"we cannot call {self.words}: {error}") from error
            except Exception as error:
                if isinstance(getattr(error, "obj", None), (TableModel, TableTokenizer, StandInSelf)):
                    raise NotEnumerableError(f"we cannot call {self.words}: {error}") from error
                self._note_why(error)
                if number + 1 >= GIVEN_UP and not texts:
                    return form, NONE
                continue
            texts.append(tokens)
            strange += any(model.strange for model in models)
            is_drafting += bool(models[0].texts and (models[1].texts or models[0].has_drafted))
        prompt = [token + form.shift for token in PROMPT]
        found = form._replace(has_prompt=all(text[: len(prompt)] == prompt for text in texts))
        valid = 0
        for text in texts:
            try:
                self._judged_tokens(found, text, 2, 3)
                valid += 1
            except InvalidOutcomeError as error:
                self._note_why(error)
        if not valid or 2 * is_drafting < len(texts):
            return found, NONE
        return found, STRANGE if strange else ALL if valid == TRIES else SOME

    def _note_why(self, error: Exception) -> None:
        words = f"{type(error).__name__}: {error}"[:200]
        asked = sum(model.texts for model in self._models)
        self.why_not[words] = max(asked, self.why_not.get(words, 0))

    def _control_holds(self, form: LoopForm) -> bool:
        """Whether the first token has the law of its row if the draft is the target.

        A call without a text counts for nothing here.
        """
        target, _ = _tables(CONTROL)
        number, seen = iter(range(10**9)), set[Context]()

        def answer() -> Sequence[int]:
            for _ in range(100):
                self.check_time()
                generator = torch.Generator().manual_seed(next(number))
                try:
                    tokens, _models = self._play(form, target, target, 3, 2, generator)
                    first = self._judged_tokens(form, tokens, 2, 3)[:1]
                    seen.add(first)
                    return first
                except Exception:
                    continue
            return ()

        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002
        wanted = np.array(list(map(float, self.stated_row((), torch.tensor(target(()))))))
        drawn = draw_and_judge(answer, wanted, 3, 1, most=DRAWS, risk=RISK)
        if drawn.rejected:
            self._withdrawn[form.of_one_law] = (
                f", but is always {seen.pop()[0]} after the prompt {list(PROMPT)}, as in a loop that decodes "
                "greedily or drafts the likeliest tokens; with --processor temperature=0 we judge it as "
                "greedy decoding"
                if len(seen) == 1
                else ""
            )
        return not drawn.rejected


def _tables(pair: ModelPair) -> list[Callable[[Sequence[int]], list[float]]]:
    """The rows of both models as functions of a text, each computed once."""

    def table(levels: Sequence[np.ndarray]) -> Callable[[Sequence[int]], list[float]]:
        model, known = LookUpModel(levels, pair.vocab_size), dict[tuple[int, ...], list[float]]()

        def row(text: Sequence[int]) -> list[float]:
            key = tuple(text)
            if key not in known:
                known[key] = model.row(key).astype(np.float32).tolist()
            return known[key]

        return row

    return [table(pair.target), table(pair.draft)]


def _no_rows(pair: ModelPair) -> tuple[tuple[Fraction, ...], ...]:
    """Rows that are not compared with anything."""
    return ((Fraction(1, pair.vocab_size),) * pair.vocab_size,) * pair.draft_length


def as_shipped(
    function: Callable[..., Any], signature: str, name: str | None = None, **options: Any
) -> Shipped:
    """Build a ``ModelLoop``, a ``DraftingRound`` or a ``Shipped`` from a function, by its signature.

    A sampler of a flattened batch becomes one of the signature "batch".
    """
    if signature == FLATTENED:
        name = name or str(getattr(function, "__name__", "sampler"))
        options.setdefault("provenance", Provenance.of(function))
        return Shipped(flattened(function), "batch", name, **options)
    if signature in LOOPS:
        return ModelLoop(function, name, signature, **options)
    if signature in (ROUND, ROUND_BATCH):
        return DraftingRound(function, name, signature, **options)
    return Shipped(function, signature, name, **options)
