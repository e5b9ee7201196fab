"""The colours of the verifiers: one for each, apart for every kind of colour vision."""

from itertools import combinations

import numpy as np

from spectheory import verifiers
from spectheory.verification.curves import PALETTE, VERIFIER_STYLES

# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
VISIONS = {
    "normal": np.eye(3),
    "protanopia": np.array([
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998],
    ]),
    "deuteranopia": np.array([
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881],
    ]),
    "tritanopia": np.array([
        [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900],
    ]),
}  # fmt: skip
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
LEAST_DISTANCE = 15
"""In CIELAB; 2.3 is just noticeable side by side."""


def lab(colour: str, vision: str) -> np.ndarray:
    """CIELAB of a colour as somebody with this vision sees it."""
    encoded = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(VISIONS[vision] @ linear, 0, 1) / [0.9505, 1, 1.089]
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def closest(colours: dict[str, str]) -> tuple[float, tuple[str, str], str]:
    """(distance, the two, the vision) of the two colours that are hardest to tell apart."""
    return min(
        (float(np.linalg.norm(lab(colours[one], vision) - lab(colours[other], vision))), (one, other), vision)
        for one, other in combinations(colours, 2)
        for vision in VISIONS
    )


def test_looks_follow_the_registry() -> None:
    """Every verifier has its look; those of the published figures stay; labels are the papers'."""
    assert list(VERIFIER_STYLES) == list(verifiers)
    assert len({style.colour for style in VERIFIER_STYLES.values()}) == len(verifiers) < len(PALETTE)
    moved = "a verifier has another colour than in the published figures; put a new one last in the registry"
    looks = {name: (style.colour, style.label) for name, style in VERIFIER_STYLES.items()}
    assert looks["token"] == ("#0072B2", "token"), moved
    assert looks["multi_round"] == ("#986EFF", "multi-round"), moved
    assert looks["greedy_multipath"] == ("#82006B", "greedy multi-path"), moved
    assert looks["spectr_gbv"] == ("#A5CE6F", "SpecTr-GBV"), moved


def test_colours_are_apart_for_every_vision() -> None:
    distance, *who = closest({colour: colour for colour, _ in PALETTE})
    assert distance > LEAST_DISTANCE, who


def test_partner_red_and_green_are_not_apart() -> None:
    """Two colours that everybody tells apart but people with deuteranopia or protanopia."""
    distance, _, vision = closest({"one": "#A06A00", "other": "#7A7A00"})
    assert distance < LEAST_DISTANCE
    assert vision in {"protanopia", "deuteranopia"}
