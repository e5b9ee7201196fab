import spectheory.decoding.huggingface

from .language_model import LanguageModelPair as LanguageModelPair
from .prompts import bundled_prompts as bundled_prompts
from .prompts import read_prompts as read_prompts
from .quiet import quiet_loading as quiet_loading
from .restricting import Restriction as Restriction
from .restricting import restrict as restrict
from .sampling import SamplingOptions as SamplingOptions

custom_generate = spectheory.decoding.huggingface.custom_generate
