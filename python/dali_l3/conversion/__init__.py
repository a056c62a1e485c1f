"""The work of `dali-l3` on one file, and datasets in several formats.

- `sources`: which files a command takes
- `converting`, `exporting`, `verifying`: what is done to one file
- `mixing`, `apportioning`, `mix_record`: datasets in several formats
- `keeping`: files that stay as they are in them

Nothing here imports DALI. What reads or writes image files needs the packages of the extra `convert`.
"""
