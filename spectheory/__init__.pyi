from . import algorithms as algorithms
from . import arrays as arrays
from . import bounds as bounds
from . import drafts as drafts
from . import errors as errors
from . import instances as instances
from . import iteration as iteration
from . import models as models
from . import montecarlo as montecarlo
from . import paper as paper
from . import programs as programs
from .acceptance import acceptance as acceptance
from .algorithms import verifiers as verifiers
from .certificate import Certificate as Certificate
from .certificate import certify as certify
from .defects import defects as defects
from .law import OutputLaw as OutputLaw
from .law import output_law as output_law
from .montecarlo import simulate as simulate
from .outcome import Outcome as Outcome
from .pair import ModelPair as ModelPair
from .programs.one_position.min_cut import optimal_acceptance as optimal_acceptance
from .programs.optimum import optimum as optimum
from .verifier import Verifier as Verifier

__version__: str
