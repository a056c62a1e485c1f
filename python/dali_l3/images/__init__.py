"""Image files to arrays and back.

- `signatures`: which format a file has, by its first bytes
- `reading`: image files to arrays; `png`, `jpeg` with `jpeg_stream`, `webp`, `bmp` with `bmp_header`, `tiff`, `pnm` and
  `npy` read one format each, `stored` is what they have in common
- `png_chunks`, `png_metadata`, `png_pixels`: the parts of `png`
- `exif`: orientation
- `resizing`: images made smaller
- `encoders`, `formats`, `writing`: arrays to image files, and the proof that they are the same
- `completeness`: whether an image file is whole, without decoding it

Nothing here imports DALI. What reads or writes image files needs the packages of the extra `convert`.
"""

DEFAULT_MAX_PIXELS = 200_000_000
"""Pixels above which an image is refused before anything of it is decoded."""
