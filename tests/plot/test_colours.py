"""The ten colours of classes, measured as eyes see them, also those without one kind of cones."""

from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgb

from fastkpca.plot._figure import COLOURS

# B. Ottosson, A perceptual color space for image processing (Oklab), 2020
CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
# G. Machado, M. Oliveira, L. Fernandes, A physiologically-based model for simulation of color vision deficiency, 2009
DEFICIENT = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def closest(seen):
    """The smallest distance of two of the colours in Oklab, where the linear light is ``seen`` through this matrix."""
    light = np.array([to_rgb(colour) for colour in COLOURS])
    light = np.where(light <= 0.04045, light / 12.92, ((light + 0.055) / 1.055) ** 2.4)
    places = np.cbrt(np.clip(light @ np.array(seen).T, 0, 1) @ CONES.T) @ OKLAB.T
    return min(float(np.linalg.norm(a - b)) for a, b in combinations(places, 2))


def test_ten_colours_are_distinct():
    assert len(set(COLOURS)) == 10
    assert closest(np.eye(3)) > 0.13  # matplotlib's own ten: 0.11; Petroff's: 0.09


@pytest.mark.parametrize("eyes", DEFICIENT)
def test_also_for_the_colour_blind(eyes):
    assert closest(DEFICIENT[eyes]) > 0.09  # matplotlib's own: 0.01; Petroff's: 0.06
