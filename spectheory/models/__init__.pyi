import spectheory.decoding.huggingface

from .derived_drafts import few_tokens as few_tokens
from .derived_drafts import first_layers as first_layers
from .derived_drafts import last_tokens as last_tokens
from .derived_drafts import prompt_lookup as prompt_lookup
from .derived_drafts import prompt_ngrams as prompt_ngrams
from .device import cpu_threads as cpu_threads
from .device import is_out_of_memory as is_out_of_memory
from .device import resolve_device as resolve_device
from .drafting import DraftedBatch as DraftedBatch
from .drafting import PrefilledPrompts as PrefilledPrompts
from .drafting import draft_and_score as draft_and_score
from .drafting import likeliest_nodes as likeliest_nodes
from .drafting import most_likely_at_prompts as most_likely_at_prompts
from .drafting import prefill as prefill
from .drafting import prefill_texts as prefill_texts
from .fetching import fetch_model as fetch_model
from .growing_texts import Texts as Texts
from .known_models import KNOWN_MODELS as KNOWN_MODELS
from .known_models import model_folder as model_folder
from .language_model import LanguageModelPair as LanguageModelPair
from .language_model import UnloadedPair as UnloadedPair
from .language_model import check_models as check_models
from .language_model import encode_prompts as encode_prompts
from .loading import BUNDLED as BUNDLED
from .loading import BUNDLED_FOLDER as BUNDLED_FOLDER
from .prompts import bundled_prompts as bundled_prompts
from .prompts import prompt_name as prompt_name
from .prompts import read_prompts as read_prompts
from .quiet import quiet_loading as quiet_loading
from .restricting import check_sizes as check_sizes
from .restricting import restrict as restrict
from .restriction import Restriction as Restriction
from .sampling import SamplingOptions as SamplingOptions
from .sampling import scaled_logits as scaled_logits
from .trained_drafts import TRAINED_DRAFTS as TRAINED_DRAFTS

custom_generate = spectheory.decoding.huggingface.custom_generate
