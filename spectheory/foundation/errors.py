"""Every error the package raises on purpose, in one place.

Bad input raises a subclass of ``InvalidInputError`` (a ``ValueError``); its text says what was
received, what was expected and what to do.  A solver or a certificate that fails raises a
subclass of ``ComputationError`` (a ``RuntimeError``): nothing but an optimal solution is returned.
"""


class InvalidInputError(ValueError):
    """The caller's input cannot be used as it is."""


class InvalidPairError(InvalidInputError):
    """A pair of models is malformed: rows, contexts or arithmetic."""


class UnknownNameError(InvalidInputError, KeyError):
    """No verifier, instance or figure has the given name; in a registry the key is missing."""

    __str__ = Exception.__str__  # KeyError quotes its text


class EnumerationTooLargeError(InvalidInputError):
    """An exact enumeration is larger than the documented limit."""


class InvalidOutcomeError(InvalidInputError):
    """A verifier raised on drafts that it was given, or returned something that is not a conditional law."""


class NotJudgedError(InvalidOutcomeError):
    """An import or ``bind`` fails, a declaration is false, an answer is in another arithmetic: no verdict."""


class MissingDependencyError(InvalidInputError, ImportError):
    """A library of an optional part is not installed; the text says what to install."""


class NoVerdictError(InvalidInputError, TypeError):
    """A law, an optimum or an estimate was asked whether it is true; the text names what to ask instead."""


class TokenizerMismatchError(InvalidInputError):
    """Target and draft do not share one tokenizer."""


class InfeasiblePointError(InvalidInputError):
    """A point breaks a constraint of the multi-path program or of its dual; ``witness`` names one.

    Attributes:
        witness: contexts: the leaves of a set that a skewed draft is too heavy on, or the one context whose
            score and slack are too small.
        violation: by how much.
    """

    def __init__(self, message: str, witness: tuple[tuple[int, ...], ...], violation: float) -> None:
        super().__init__(message)
        self.witness = witness
        self.violation = violation


class ComputationError(RuntimeError):
    """A computation on valid input did not reach a result that can be vouched for."""


class SolverError(ComputationError):
    """A program was not solved to optimality; the text names the program, its size and the status."""


class InsufficientMemoryError(ComputationError):
    """Memory ran out; the text says what to make smaller."""


class CertificationError(ComputationError):
    """A solution could not be confirmed in rational arithmetic."""


class Notice(UserWarning):
    """Something to know about a result that is right: one line, on stderr where the command line runs."""


class SlowReadingNotice(Notice):
    """A model cannot use a cache and reads the whole text again for every token; the numbers are the same."""


class NoKernelsNotice(Notice):
    """The package's Triton kernels or a CUDA graph do not run on a device; torch's operators do the same."""


class UnfinishedLineNotice(Notice):
    """A checkpoint ends within a line, as after a kill; that line is computed again."""


LONGEST_TEXT = 500
"""The characters of what an exception of user code says."""


def text_of(error: BaseException, longest: int | None = LONGEST_TEXT) -> str:
    """What an exception of user code says, in one line; nothing where that fails, for it is user code too."""
    try:
        return " ".join(str(error).split())[:longest]
    except KeyboardInterrupt:
        raise
    except BaseException:
        return ""
