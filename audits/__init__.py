"""Samplers of libraries and repositories that we audit: adapters, fetching, specimens and histories.

The package does not hold this folder and never imports it: ``spectheory audit NAME`` loads it by its path.

- ``libraries``: one file per sampler of a library; ``docs/adapters.md`` says how to add one.
- ``forms``: what several of them share, such as a flat batch or a model with a cache.
- ``loading``: where the files of a library are, and how one function of it is imported alone.
- ``specimens``: samplers with one mistake each, and their right partners.
- ``registry``: the samplers by name.
- ``release_history``: the verdicts release by release.
"""
