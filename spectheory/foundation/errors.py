"""All errors and warnings of the package.

Bad input raises a subclass of ``InvalidInputError`` (a ``ValueError``).  Its message says what was
received, what was expected and what to do.  A solver or a certificate that fails raises a
subclass of ``ComputationError`` (a ``RuntimeError``), because only optimal solutions are returned.
"""


class InvalidInputError(ValueError):
    """The caller's input is invalid."""


class InvalidPairError(InvalidInputError):
    """A pair of models has invalid rows, contexts or arithmetic."""


class UnknownNameError(InvalidInputError, KeyError):
    """No verifier, instance or figure has the given name.  Also a ``KeyError``, for registries."""

    __str__ = Exception.__str__  # KeyError quotes its text


class EnumerationTooLargeError(InvalidInputError):
    """An exact enumeration is larger than the documented limit."""


class InvalidOutcomeError(InvalidInputError):
    """A verifier raised an exception on drafts, or did not return a conditional law."""


class NotJudgedError(InvalidOutcomeError):
    """There is no verdict: an import or ``bind`` failed, a declaration is false, or arithmetic changed."""


class MissingDependencyError(InvalidInputError, ImportError):
    """An optional library is not installed; the message says what to install."""


class NoVerdictError(InvalidInputError, TypeError):
    """A law, an optimum or an estimate was used as a truth value; the message names an attribute to use."""


class TokenizerMismatchError(InvalidInputError):
    """Target and draft do not have the same tokenizer."""


class InfeasiblePointError(InvalidInputError):
    """A point violates a constraint of the multi-path program or of its dual.

    Attributes:
        witness: contexts that identify one violated constraint: the leaves of a set to which a skewed draft
            gives too much mass, or the one context whose score and slack are too small.
        violation: the amount of the violation.
    """

    def __init__(self, message: str, witness: tuple[tuple[int, ...], ...], violation: float) -> None:
        super().__init__(message)
        self.witness = witness
        self.violation = violation


class ComputationError(RuntimeError):
    """A computation on valid input did not reach a reliable result."""


class SolverError(ComputationError):
    """A program was not solved to optimality; the message names the program, its size and the status."""


class InsufficientMemoryError(ComputationError):
    """Memory ran out; the message says what to make smaller."""


class CertificationError(ComputationError):
    """A solution could not be confirmed in rational arithmetic."""


class Notice(UserWarning):
    """A remark about a correct result, in one line.  The command line prints it on stderr."""


class SlowReadingNotice(Notice):
    """A model cannot use a cache, and reads the whole text again for every token, with the same results."""


class NoKernelsNotice(Notice):
    """The package's Triton kernels or a CUDA graph do not run on a device; torch's operators replace them."""


class UnfinishedLineNotice(Notice):
    """A checkpoint ends within a line, as after a kill; this line is computed again."""


LONGEST_TEXT = 500
"""The most characters of the message of an exception of user code that are shown."""


def text_of(error: BaseException, longest: int | None = LONGEST_TEXT) -> str:
    """Return the message of a user's exception in one line, or "" if its ``__str__`` (user code) fails."""
    try:
        return " ".join(str(error).split())[:longest]
    except KeyboardInterrupt:
        raise
    except BaseException:
        return ""
