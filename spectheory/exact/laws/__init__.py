"""Output laws without a list of all drafts: routes that call the steps of a verifier once per context.

The enumeration in ``exact.law`` is the definition of a law and the fallback of every route.
"""
