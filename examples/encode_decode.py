"""L3 and numpy: encode an array, look at the file, decode it whole and in part.

python examples/encode_decode.py
"""

import numpy as np
from skimage import data

import dali_l3

photo = data.astronaut()  # uint8, (512, 512, 3)
encoded = dali_l3.encode(photo, metadata={"comment": b"Eileen Collins"})
print(f"{photo.nbytes} bytes of pixels became {len(encoded)} bytes")

info = dali_l3.peek(encoded)  # reads the header alone
print(f"{info.shape} of {info.dtype}, profile {info.profile}, {info.tiles} tiles; {dali_l3.read_metadata(encoded)}")

assert np.array_equal(dali_l3.decode(encoded), photo)

# A region costs only the tiles that it touches.
face = dali_l3.decode(encoded, roi=(20, 150, 200, 160))  # top, left, height, width
assert np.array_equal(face, photo[20:220, 150:310])

# Decoding into memory that is there already: here, a slot of a batch.
batch = np.empty((4, *info.shape), info.dtype)
dali_l3.decode(encoded, out=batch[2])
assert np.array_equal(batch[2], photo)

try:
    dali_l3.decode(encoded[: len(encoded) // 2])
except dali_l3.L3Error as error:
    print(f"Half a file: {error} (status: {error.status})")
