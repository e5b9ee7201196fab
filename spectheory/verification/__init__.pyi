from . import algorithms as algorithms
from . import defective as defective
from .algorithms import verifiers as verifiers
from .defective import defects as defects
from .outcome import Outcome as Outcome
from .verifier import Verifier as Verifier
