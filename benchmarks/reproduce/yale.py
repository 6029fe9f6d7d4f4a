"""Yale faces, leave one out: seed of the table is Yang 2001 (Face recognition using kernel methods), beside ours.

The images are not shipped with fastkpca, and this script does not fetch them. Have them as a folder of 165 files, such
as ``subject01.happy`` or ``subject01.happy.pgm`` (what stands before the first dot names the person), or as a MAT-file
with ``fea`` (165, pixels) and ``gnd`` (165,). Cropping, down-sampling and normalisation are not stated in the paper;
``--crop`` and ``--size`` try some.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import scipy.io
from faces import add_options, basis_images, compare, components, fisherfaces, of_people, plain, whitened
from setting import header

PUBLISHED_OF = 165


def from_mat(path: Path) -> tuple[np.ndarray, np.ndarray]:
    stored = scipy.io.loadmat(path)
    if not {"fea", "gnd"} <= stored.keys():
        names = ", ".join(name for name in stored if not name.startswith("_"))
        sys.exit(f"{path} holds {names or 'nothing'}; the pixels are looked for as fea, the people as gnd")
    X, y = np.asarray(stored["fea"]), np.ravel(stored["gnd"])
    if len(X) != len(y):
        sys.exit(f"fea of {path} has {len(X)} rows and gnd has {len(y)} entries; one row for each is needed")
    return X, y


def from_folder(path: Path, size: tuple[int, int], crop: tuple[int, int, int, int] | None) -> tuple:
    try:
        from PIL import Image
    except ImportError:
        sys.exit("reading images needs Pillow, which is not installed: pip install pillow; or give a MAT-file")
    X, y = [], []
    for file in sorted(path.iterdir()):
        if not file.name.startswith("subject") or file.suffix in (".txt", ".zip"):
            continue
        with Image.open(file) as image:
            picture = image.convert("L").crop(crop) if crop else image.convert("L")
            X.append(np.asarray(picture.resize(size, Image.Resampling.BOX), dtype=np.float64).ravel())
        y.append(file.name.partition(".")[0])
    if not X:
        sys.exit(f"{path} has no files whose names begin with subject, as in subject01.happy")
    return np.array(X), np.array(y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--people", type=int, default=15, help="only so many of them")
    parser.add_argument("--images", type=Path, help="folder of the images, or a MAT-file")
    parser.add_argument(
        "--size", type=int, nargs=2, default=(29, 41), metavar=("WIDTH", "HEIGHT"), help="of a folder's"
    )
    parser.add_argument("--crop", type=int, nargs=4, metavar=("LEFT", "TOP", "RIGHT", "BOTTOM"), help="before that")
    options = parser.parse_args()
    if options.images is None:
        sys.exit("give --images, the folder of the Yale images, which are not shipped: get them from their owner first")
    if not options.images.exists():
        sys.exit(f"{options.images} is not there. The Yale images are not shipped: get them from their owner first")
    if options.images.is_dir():
        X, y = from_folder(options.images, tuple(options.size), options.crop and tuple(options.crop))
    else:
        X, y = from_mat(options.images)
    X, y = of_people(X, y, options.people)
    header("reproduce: Yale faces, leave one out")
    print(f"{len(X)} images of {len(np.unique(y))} people, {X.shape[1]} pixels; the images are not part of fastkpca")
    degree, sigma, kept = options.degree, options.sigma, options.components
    methods = [
        ("ICA, basis images (30)", 48, basis_images(30)),
        ("ICA, whitened (30)", 48, whitened(30)),
        ("Eigenface (30)", 47, components("linear", 30)),
        ("Fisherface (14)", 14, fisherfaces("linear", 14, kept)),
        ("Kernel Eigenface, d = 2 (80)", 45, components("polynomial", 80, degree=2, **plain(X))),
        ("Kernel Eigenface, d = 3 (60)", 40, components("polynomial", 60, degree=3, **plain(X))),
        (f"Kernel Fisherface, d = {degree} (14)", 11, fisherfaces("polynomial", 14, kept, degree=degree, **plain(X))),
        (f"Kernel Fisherface, sigma = {sigma:g} (14)", 10, fisherfaces("gaussian", 14, kept, sigma=sigma)),
    ]
    compare(X, y, methods, PUBLISHED_OF)


if __name__ == "__main__":
    main()
