from .check import check_proof as check_proof
from .proof_file import RejectedProofError as RejectedProofError
from .search import prove as prove
from .verdict import Proof as Proof
