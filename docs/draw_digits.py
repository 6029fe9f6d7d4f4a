"""The picture of the README and of the site's first page: python docs/draw_digits.py"""

from io import BytesIO
from pathlib import Path

from PIL import Image
from sklearn.datasets import load_digits

import fastkpca as fk

X, digit = load_digits(return_X_y=True)
ax = fk.plot.scores(fk.kpca(X[:1500], "gaussian", 2), digit[:1500], label_name="digit")
drawn = BytesIO()
ax.figure.savefig(drawn, dpi=110)
# 256 colours are enough, and a fifth of the bytes
Image.open(drawn).convert("RGB").quantize(256).save(Path(__file__).with_name("digits.png"), optimize=True)
