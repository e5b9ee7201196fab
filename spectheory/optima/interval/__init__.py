"""The multi-path optimum as a certified interval, on trees of up to hundreds of thousands of leaves."""
