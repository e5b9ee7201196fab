"""Samplers in any language: a program that reads one JSON object per line and writes one per line.

The protocol is on the page docs/sampler_programs.md.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import Any

from spectheory.auditing.handing.numbers import NOW, ONE, NotHandedError, Use
from spectheory.foundation.errors import InvalidInputError

UNIFORMS = 64
"""The random numbers of a question; a Gumbel race over 3 tokens after 6 drafts uses 27."""
_UNIFORM = Use("uniform")


class Program:
    """A running program.  Each call sends it one question.

    Args:
        command: a command line, such as ``"node sampler.js"``.  It does not pass through a shell.

    Raises:
        InvalidInputError: there is no such program.
    """

    def __init__(self, command: str) -> None:
        self.__name__ = command
        self._words = shlex.split(command)
        self._process: subprocess.Popen[str] | None = None
        self._start()

    def __call__(self, question: dict[str, Any]) -> list[int]:
        """Send a question, and return the tokens of the answer.

        Raises:
            RuntimeError: the program answers with an error, gives an invalid answer, or ends.
        """
        if NOW.point is None:
            return self._ask(question)["tokens"]
        stream = NOW.stream()
        values = [NOW.point.at((stream, place)) / ONE for place in range(UNIFORMS)]
        answer = self._ask({**question, "uniforms": values})
        used = answer.get("used", UNIFORMS)
        if not isinstance(used, int) or not 0 <= used <= UNIFORMS:
            raise NotHandedError(f"the program says that it used {used} random numbers of {UNIFORMS}")
        NOW.take(stream, [_UNIFORM] * used)
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

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
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
        if not isinstance(answer, dict) or not isinstance(answer.get("tokens"), list):
            said = answer.get("error") if isinstance(answer, dict) else None
            raise RuntimeError(f"the program answers {said or line[:80]!r}, without a list of tokens")
        return answer
