"""Samplers in any language: a program that reads one JSON object per line and writes one per line.

The protocol is on the page docs/sampler_programs.md.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from spectheory.auditing.handing.numbers import NOW, ONE, NotHandedError, Use
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import InvalidInputError

UNIFORMS = 64
"""The random numbers of a request; a Gumbel race over 3 tokens after 6 drafts uses 27."""
_UNIFORM = Use("uniform")
_READ = {"greedy": "is_greedy", "seed": "seed"}
"""What a program can say that it reads -> the field of a row."""


class Program:
    """A running program.  Each call sends it one question.

    Args:
        command: a command line, such as ``"node sampler.js"``.  It does not pass through a shell.

    Raises:
        InvalidInputError: there is no such program.
    """

    def __init__(self, command: str) -> None:
        self.__name__ = self.__qualname__ = command
        self._words = shlex.split(command)
        self._process: subprocess.Popen[str] | None = None
        self._start()

    def __call__(self, question: dict[str, Any]) -> list[int]:
        """Send a question, and return the tokens of the answer.

        Raises:
            RuntimeError: the program answers with an error, gives an invalid answer, or ends.
        """
        note_used = _with_uniforms(question)
        answer = self._ask(question, "tokens")
        note_used(answer)
        return answer["tokens"]

    def close(self) -> None:
        """End the program."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        if self._process is None:
            try:
                self._process = subprocess.Popen(
                    self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
                )
            except (OSError, IndexError) as error:
                raise InvalidInputError(
                    f"--command {self.__name__!r} cannot be started: {error or 'it is empty'}"
                ) from None
        return self._process

    def _ask(self, question: dict[str, Any], field: str) -> dict[str, Any]:
        process = self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = process.wait()
            self._process = None  # the next question starts it again
            raise RuntimeError(f"the program ended with exit code {code}")
        try:
            answer = json.loads(line)
        except ValueError:
            raise RuntimeError(f"the program wrote {line[:80]!r}, which is not JSON") from None
        if not isinstance(answer, dict) or not isinstance(answer.get(field), list):
            said = answer.get("error") if isinstance(answer, dict) else None
            raise RuntimeError(f"the program answers {said or line[:80]!r}, without a list of {field}")
        return answer


class BatchProgram(Program):
    """A running program that verifies batches: a sampler of the signature "batch"."""

    MIXES = ("no drafts", "ragged", "greedy", "seeds")
    """The kinds of batches; a question has no placeholders."""

    def __call__(self, rows: Sequence[Any], generator: Any) -> list[Any]:  # type: ignore[override]
        """Send the requests of a batch, and return the tokens of each, or its tokens and log-probabilities.

        Raises:
            RuntimeError: as for a program that verifies one request, or it does not answer each request.
            NotEnumerableError: ``reads`` is not a list of what a program can read.
        """
        requests = [_request(row) for row in rows]
        notes = list(map(_with_uniforms, requests))
        answer = self._ask({"requests": requests, "seed": generator.initial_seed()}, "requests")
        reads, returned = _reads(answer), list[Any]()
        if len(answer["requests"]) != len(rows):
            many = count_text(len(answer["requests"]), "request")
            raise RuntimeError(f"the program answers for {many}, expected {len(rows)}")
        for each, note_used in zip(answer["requests"], notes, strict=True):
            if not isinstance(each, dict) or not isinstance(each.get("tokens"), list):
                said = json.dumps(each)[:80]
                raise RuntimeError(f"the program answers {said} for a request, without a list of tokens")
            note_used(each)
            logprobs = each.get("logprobs")
            returned.append(each["tokens"] if logprobs is None else (each["tokens"], logprobs))
        for name in reads:
            for row in rows:
                getattr(row, _READ[name])  # a row notes what is read
        return returned


def _reads(answer: dict[str, Any]) -> list[str]:
    """What a program says that it reads; where it is not in the protocol, this is no defect of its tokens."""
    reads = answer.get("reads")
    if reads is None:
        return []
    if not isinstance(reads, list) or any(name not in list(_READ) for name in reads):
        known, said = ", ".join(map(json.dumps, _READ)), json.dumps(reads)[:80]
        raise NotEnumerableError(f'the program answers "reads": {said}, expected a list of {known}')
    return reads


def _request(row: Any) -> dict[str, Any]:
    """A request of a batch as JSON.  We index its fields, because a row notes those that are read by name."""
    tokens, target, draft, is_greedy, _, seed = row
    named = {"draft_tokens": tokens, "target_rows": target, "draft_rows": draft}
    given = {name: part.tolist() for name, part in named.items()} | {"greedy": is_greedy}
    return given if seed is None else given | {"seed": seed}


def _with_uniforms(asked: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    """Add random numbers, if they are handed.  The returned function notes how many an answer has used."""
    if NOW.point is None:
        return lambda answer: None
    stream = NOW.stream()
    asked["uniforms"] = [NOW.point.at((stream, place)) / ONE for place in range(UNIFORMS)]

    def note_used(answer: dict[str, Any]) -> None:
        used = answer.get("used", UNIFORMS)
        if not isinstance(used, int) or not 0 <= used <= UNIFORMS:
            raise NotHandedError(f"the program says that it used {used} random numbers of {UNIFORMS}")
        NOW.take(stream, [_UNIFORM] * used)

    return note_used
