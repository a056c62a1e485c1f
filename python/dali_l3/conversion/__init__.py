"""Conversion of image files to and from L3, as plain functions that the command line calls.

- `signatures`: which format a file has, by its first bytes
- `reading`, `exif`: image files to arrays
- `encoders`, `formats`, `writing`: arrays to image files, and the proof that they are the same
- `wholeness`: whether an image file is whole, without decoding it
- `converting`, `exporting`, `verifying`: what is done to one file
- `walking`, `planning`: which file becomes which, decided before anything is written
- `mixing`, `apportioning`, `mix_record`: datasets in several formats
- `files`: files that appear whole or not at all
- `workers`, `running`: tasks in worker processes
- `interrupting`: Ctrl-C and SIGTERM
- `outcomes`, `display`: what became of a file, and how it is shown

Nothing here imports DALI. What reads or writes image files needs the packages of the extra `convert`.
"""

DEFAULT_MAX_PIXELS = 200_000_000
"""Pixels above which an image is refused before anything of it is decoded."""
