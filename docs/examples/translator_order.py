"""Does the row that transformers' translator reports follow its drafts?  (docs/adaptive_drafts.md)

python docs/examples/translator_order.py transformers-*.whl
"""

import ast
import random
import sys
import zipfile

import torch
from transformers.generation import candidate_generator
from transformers.utils.deprecation import deprecate_kwarg

WRONG = "target_logits[..., target_logits_supported_indices] = assistant_logits"
FIXED = (
    "target_logits[..., self._assistant_to_target_input_ids[self.assistant_overlap_token_ids]]"
    " = assistant_logits"
)
NAMES = ("_PruneReindexingLMHead", "_MapInputEmbedding", "AssistantToTargetTranslator")
SHARED, DRAWS = [f"w{i}" for i in range(8)], 200_000


class Words:
    """A tokenizer of whole words.  The order of a vocabulary is random in released tokenizers too."""

    def __init__(self, words):
        self.vocab = dict(random.Random(1).sample([(word, i) for i, word in enumerate(words)], len(words)))

    def get_vocab(self):
        return dict(self.vocab)

    def __call__(self, text, **options):
        return {"input_ids": []}


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.head, self.embedding = torch.nn.Linear(4, size, bias=False), torch.nn.Embedding(size, 4)
        self.device = torch.device("cpu")

    get_output_embeddings = lambda self: self.head  # noqa: E731
    get_input_embeddings = lambda self: self.embedding  # noqa: E731
    set_output_embeddings = lambda self, head: setattr(self, "head", head)  # noqa: E731
    set_input_embeddings = lambda self, layer: setattr(self, "embedding", layer)  # noqa: E731


def translator_of(source):
    """The translator of a release, run from its source."""
    classes = [n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name in NAMES]
    space = vars(candidate_generator) | {"deprecate_kwarg": deprecate_kwarg}
    exec(compile(ast.Module(classes, []), "release", "exec"), space)  # noqa: S102 - a release that you chose
    return space["AssistantToTargetTranslator"]


def judge(source, draft_words):
    torch.manual_seed(0)
    target, draft = Words(["<unk>", *SHARED, "target"]), Words(["<unk>", *SHARED, *draft_words])
    model = Model(len(draft.vocab))
    arguments = {"target_vocab_size": len(target.vocab), "assistant_model": model}
    make = translator_of(source)(target, draft, **arguments, assistant_prune_lm_head=True)
    logits = 4 * model.head(torch.randn(4))
    none = torch.zeros(1, 0, dtype=torch.long)
    draws = torch.multinomial(logits.softmax(-1), DRAWS, replacement=True)
    drafted = make.get_target_ids(none, none, draws[None])[0]
    reported = make.get_target_logits(logits[None, None])[0, 0].softmax(-1).double()
    counts = torch.bincount(drafted, minlength=len(reported))
    likely = reported > 0
    chi_squared = ((counts - DRAWS * reported)[likely] ** 2 / (DRAWS * reported[likely])).sum()
    variation = (counts / DRAWS - reported).abs().sum() / 2
    return f"chi2 = {chi_squared:.0f} on {int(likely.sum()) - 1} degrees of freedom, TV = {variation:.3f}"


for wheel in sys.argv[1:]:
    source = zipfile.ZipFile(wheel).read("transformers/generation/candidate_generator.py").decode()
    for name, text in (("as released", source), ("fixed", source.replace(WRONG, FIXED))):
        for draft_words in (["one", "two"], []):
            try:
                found = judge(text, draft_words)
            except Exception as error:
                found = f"{type(error).__name__}: {error}".splitlines()[0]
            print(wheel.split("-")[1], name, "subset" if not draft_words else "overlap", found, sep=" | ")
