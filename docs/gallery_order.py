"""The order of the gallery: from a first example to the details."""

ORDER = [
    "five_minutes",
    "contours",
    "rings",
    "clustering",
    "sigma",
    "selection",
    "scree",
    "importance",
    "uncertainty",
    "denoise_digits",
    "faces",
    "novelty",
    "monitoring",
    "stream",
    "two_samples",
    "accuracy",
    "nystroem",
    "convergence",
    "truncation_bound",
    "scale",
]


class Order:
    """Sort key of sphinx-gallery: what is not listed comes last, by name."""

    def __init__(self, folder: str):
        self.folder = folder

    def __call__(self, filename: str) -> tuple[int, str]:
        name = filename.removeprefix("plot_").removesuffix(".py")
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)

    def __repr__(self) -> str:
        return "Order"
