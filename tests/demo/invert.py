"""Saves the negative of a window: invert.py IMAGE WINDOW OUTPUT.npy."""
# SPDX-License-Identifier: Apache-2.0
import sys

import numpy

image, window, output = sys.argv[1:]
numpy.save(output, 255 - numpy.load(f"{image}@/win/{window}.npy"))
