from .huggingface import generate as generate
from .loop import Iteration as Iteration
from .loop import iterations as iterations
from .processors import LogitsProcessors as LogitsProcessors
from .stopping import Stopping as Stopping
from .texts import DecodedText as DecodedText
from .texts import decode as decode
from .texts import end_of_sequence as end_of_sequence
