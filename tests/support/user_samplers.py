"""Samplers as users write them for a decoding loop: one is lossless, one is wrong."""

from typing import Any


def token_sampler(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    """Speculative sampling as in a decoding loop, on the first path."""
    accepted: list[int] = []
    for token, target, draft in zip(paths[0], target_rows[0], draft_rows[0], strict=False):
        if generator.random() * draft[token] < target[token]:
            accepted.append(int(token))
            continue
        residual = [max(p - q, p - p) for p, q in zip(target, draft, strict=True)]
        return [*accepted, generator.choice(len(residual), p=[r / sum(residual) for r in residual])]
    return [*accepted, generator.choice(len(target_rows[0, -1]), p=list(target_rows[0, -1]))]


def forgets_the_residual(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    """Known to be wrong: after a rejection it draws from the target."""
    token, target, draft = int(paths[0, 0]), target_rows[0, 0], draft_rows[0, 0]
    if generator.random() < target[token] / draft[token]:
        return [token, generator.choice(len(target), p=list(target_rows[0, 1]))]
    return [generator.choice(len(target), p=list(target))]
