"""Denoising USPS digits: the factors of Mika et al. 1998 (Kernel PCA and de-noising in feature spaces), beside ours.

There: 300 training and 50 test digits of each kind, normally distributed noise of standard deviation 0.5, and speckle
that makes a pixel black or white with probability 0.4; a Gaussian kernel exp(-|x-y|^2 / (0.5 d)), so sigma = 8,
pre-images by fixed-point iteration, components from clean digits. The best kernel PCA reconstruction (over the number
of components) is nearer to the clean digit than the best linear one, in mean squared distance, by a factor of 1.6
(Gaussian noise) and 1.2 (speckle). Quoted from memory of the paper; which digits they were is not stated, nor the scale
of a pixel (here -1..1). "span" is fastkpca.kpca_denoise, "affine" are pre-images of the centred projection.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from setting import data, header, table

import fastkpca as fk
from fastkpca.model.result import leading

PUBLISHED = {"gaussian": 1.6, "speckle": 1.2}
COUNTS = (1, 4, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048)


def choose(X: np.ndarray, y: np.ndarray, each: int, rng: np.random.Generator) -> np.ndarray:
    return X[np.concatenate([rng.choice(np.flatnonzero(y == k), each, replace=False) for k in np.unique(y)])]


def disturbed(clean: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    speckle, chance = clean.copy(), rng.random(clean.shape)
    speckle[chance < 0.2], speckle[chance > 0.8] = -1.0, 1.0
    return {"gaussian": clean + 0.5 * rng.standard_normal(clean.shape), "speckle": speckle}


def errors(
    model: fk.KPCAModel, clean: np.ndarray, noisy: dict[str, np.ndarray], counts: list[int], affine: bool
) -> dict[tuple[str, int], float]:
    found = {}
    for noise, images in noisy.items():
        for c in counts:
            if c > model.n_components:
                continue
            small = leading(model, np.ones(c))
            if affine:
                back = fk.kpca_preimage(small, fk.kpca_project(small, images), start=images)
            else:
                back = fk.kpca_denoise(small, images)
            found[noise, c] = float(np.mean(np.sum((back - clean) ** 2, axis=1)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=300, help="training digits of each kind")
    parser.add_argument("--tests", type=int, default=50, help="test digits of each kind")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(COUNTS), help="numbers of components")
    parser.add_argument("--sigma", type=float, nargs="+", default=[5.0, 8.0, 9.5])
    parser.add_argument("--affine", action="store_true", help="also pre-images of the centred projection")
    options = parser.parse_args()
    digits = dict(data("usps.npz"))
    header("reproduce: denoising USPS digits")
    totals: dict[tuple[str, str, int], list[float]] = {}
    nothing: dict[str, list[float]] = {}
    ways: list[tuple[str, float | None, bool]] = [("linear", None, True)]
    for sigma in options.sigma:
        ways.append((f"sigma {sigma:g}, span", sigma, False))
        ways += [(f"sigma {sigma:g}, affine", sigma, True)] * options.affine
    names = [name for name, _, _ in ways]
    for draw in range(options.draws):
        rng = np.random.default_rng(draw)
        train = choose(np.asarray(digits["X"], dtype=np.float64), digits["y"], options.rows, rng)
        clean = choose(np.asarray(digits["X_test"], dtype=np.float64), digits["y_test"], options.tests, rng)
        noisy = disturbed(clean, rng)
        for noise, images in noisy.items():
            nothing.setdefault(noise, []).append(float(np.mean(np.sum((images - clean) ** 2, axis=1))))
        most = min(max(options.sizes), len(train) - 1)
        models: dict[float | None, fk.KPCAModel] = {None: fk.kpca(train, "linear", min(most, train.shape[1] - 1))}
        for sigma in options.sigma:
            models[sigma] = fk.kpca(train, "gaussian", most, sigma=sigma, method="dense")
        for name, sigma, affine in ways:
            started = time.perf_counter()
            for (noise, c), value in errors(models[sigma], clean, noisy, options.sizes, affine).items():
                totals.setdefault((noise, name, c), []).append(value)
            print(f"draw {draw}, {name}: pre-images in {time.perf_counter() - started:.1f} s", flush=True)
    print()
    mean = {key: float(np.mean(values)) for key, values in totals.items()}
    for noise, published in PUBLISHED.items():
        print(f"{noise} noise: mean squared distance to the clean digit (noisy: {np.mean(nothing[noise]):.1f})")
        rows = [
            [str(c), *(f"{mean[noise, name, c]:.1f}" if (noise, name, c) in mean else "-" for name in names)]
            for c in options.sizes
        ]
        table(("components", *names), rows)
        best = {name: min((mean[key], key[2]) for key in mean if key[:2] == (noise, name)) for name in names}
        kernel = min(names[1:], key=lambda name: best[name])
        print(
            f"{noise}: linear / kernel {best['linear'][0] / best[kernel][0]:.2f}, published {published}; best linear "
            f"{best['linear'][0]:.1f} with {best['linear'][1]} components, kernel {best[kernel][0]:.1f} with "
            f"{best[kernel][1]}, {kernel}\n"
        )


if __name__ == "__main__":
    main()
